package mono

import "time"

// Beats are instants at which whoever may speak a little sooner does, so that a server hears
// many at once: a processor that has just done the same thing takes less time for it. Beats
// are as long as the wall clock's own 10 ms, 20 ms and so on, so those of processes on different
// hosts are as close as their wall clocks are. If these are wrong beats are of no use, and do no
// harm: they say when to speak, within a fraction of the time that it would have been anyway.
//
// The zero value is no beats.
type Beats struct {
	at      Instant       // one of the longest
	longest time.Duration // 0: there are none
}

const (
	shortestBeat = 10 * time.Millisecond
	// LongestBeat is that of those who speak rarely. Thousands of them are still heard
	// within a fraction of a second.
	LongestBeat = shortestBeat << 6
	// beatsWithin is how many beats there are at least in what is made to end with one.
	beatsWithin = 32
)

// BeatsAt returns beats of which one of the longest is at an instant.
func BeatsAt(at Instant) Beats { return Beats{at: at, longest: LongestBeat} }

// Last returns the last beat that is not after an instant, of those that befit somebody who
// speaks once in an interval: that is sooner by a small part of the interval at most. If there
// are none it returns the instant.
func (b Beats) Last(not Instant, interval time.Duration) Instant {
	if b.longest == 0 || not == Never || interval < beatsWithin*shortestBeat {
		return not
	}
	length := shortestBeat
	for length < b.longest && 2*length <= interval/beatsWithin {
		length *= 2
	}
	past := not.Sub(b.at) % length
	if past < 0 {
		past += length
	}
	return not.Add(-past)
}
