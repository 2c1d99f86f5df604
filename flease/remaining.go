package flease

import "time"

// Remaining returns for how long the lease is valid from now on if it is not
// renewed, as far as both clocks can tell; 0 if it is over. It is for those who
// hand on a promise with a time limit. Valid decides, since a clock may jump.
func (l *Lease) Remaining() time.Duration {
	until := l.until.Load()
	if until == nil {
		return 0
	}
	now, sleeps := l.node.time.read()
	if sleeps != l.sleeps {
		return 0
	}
	return max(0, min(until.Mono.Sub(now.Mono), until.Wall.Sub(now.Wall)))
}
