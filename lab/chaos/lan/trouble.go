package lan

import (
	"slices"
	"time"
)

// A Trouble is what happens to packets from some hosts to others. The zero Trouble is none.
type Trouble struct {
	Cut       bool          // nothing arrives
	Loss      float64       // the share that does not arrive
	Delay     time.Duration // how much later they arrive
	Jitter    time.Duration // and up to so much more, each its own, so that some overtake others
	Duplicate float64       // the share that arrives twice
	Rate      int           // bytes in a second; 0: no limit
}

// A Way is from each of some hosts to each of some others; a nil list is all hosts.
type Way struct{ From, To []*Host }

// covers reports whether packets from one host to another go this way.
func (w Way) covers(from, to *Host) bool {
	return (w.From == nil || slices.Contains(w.From, from)) && (w.To == nil || slices.Contains(w.To, to))
}

// and is what two troubles amount to that befall the same packets.
func (t Trouble) and(u Trouble) Trouble {
	return Trouble{
		Cut:       t.Cut || u.Cut,
		Loss:      either(t.Loss, u.Loss),
		Delay:     t.Delay + u.Delay,
		Jitter:    t.Jitter + u.Jitter,
		Duplicate: either(t.Duplicate, u.Duplicate),
		Rate:      narrower(t.Rate, u.Rate),
	}
}

// either is how likely at least one of two things is.
func either(p, q float64) float64 { return p + q - p*q }

func narrower(a, b int) int {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// A fate has the delay of each arrival of one packet.
type fate []time.Duration

// random is where a network draws from. [rand.Rand] is one.
type random interface {
	Float64() float64
	Int64N(n int64) int64
}

// draw decides about one packet. The backlog is the time until the packets before it have passed.
func (t Trouble) draw(r random, backlog time.Duration) fate {
	if t.Cut || t.Loss > 0 && r.Float64() < t.Loss || backlog > maxBacklog {
		return nil
	}
	arrivals := 1
	if t.Duplicate > 0 && r.Float64() < t.Duplicate {
		arrivals = 2
	}
	var f fate
	for range arrivals {
		late := t.Delay + backlog
		if t.Jitter > 0 {
			late += time.Duration(r.Int64N(int64(t.Jitter)))
		}
		f = append(f, late)
	}
	return f
}

// maxBacklog bounds the wait where the rate is limited. Further packets are dropped, as by routers.
const maxBacklog = 500 * time.Millisecond

// takes is how long a packet keeps a way busy.
func (t Trouble) takes(size int) time.Duration {
	if t.Rate == 0 {
		return 0
	}
	return time.Duration(size) * time.Second / time.Duration(t.Rate)
}
