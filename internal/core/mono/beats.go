package mono

import "time"

// Beats are instants, shared by all processes, to which periodic sends are aligned (timer
// coalescing). A server then receives many requests at once, which costs less processor time than
// the same requests spread out.
//
// Beats are multiples of 10 ms, 20 ms and so on of the wall clock, so hosts agree on them as
// closely as their wall clocks do. A wrong wall clock is harmless: a beat only moves a send
// earlier, by a small fraction of its interval.
//
// The zero value disables alignment.
type Beats struct {
	at      Instant       // one beat of the longest period
	longest time.Duration // longest period; 0: no beats
}

const (
	shortestBeat = 10 * time.Millisecond
	// LongestBeat is the beat period of rare sends. A server handles the requests of thousands of
	// senders at one beat within a fraction of a second.
	LongestBeat = shortestBeat << 6
	// beatsWithin is the minimum number of beats in an interval: it limits how early a send may be.
	beatsWithin = 32
)

// BeatsAt returns beats, one of which has the longest period and is at the instant at.
func BeatsAt(at Instant) Beats { return Beats{at: at, longest: LongestBeat} }

// Last returns the last beat that is not after an instant, or the instant itself if there are no
// beats. The period of the beat fits a sender with this interval: the result is earlier by a
// thirty-second of the interval at most.
func (b Beats) Last(not Instant, interval time.Duration) Instant {
	if b.longest == 0 || interval < beatsWithin*shortestBeat {
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
