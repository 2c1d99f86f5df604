package clock

import "time"

// system reads the clocks of the computer.
type system struct {
	clock *Clock
}

// Offset reads both clocks with one time.Now.
func (s system) Offset() time.Duration {
	now := time.Now()
	return time.Duration(now.UnixNano()) - now.Sub(s.clock.base)
}
