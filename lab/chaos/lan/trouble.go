package lan

import (
	"slices"
	"time"
)

// A Trouble is a fault of packets from some hosts to others. The zero Trouble is none.
type Trouble struct {
	Cut       bool          // all packets are lost
	Loss      float64       // fraction of lost packets
	Delay     time.Duration // additional latency
	Jitter    time.Duration // maximum random additional latency of each packet, which reorders packets
	Duplicate float64       // fraction of duplicated packets
	Rate      int           // bytes per second; 0: no limit
}

// A Way is the path from each of some hosts to each of some others; a nil list is all hosts.
type Way struct{ From, To []*Host }

// covers reports whether packets from one host to another use this way.
func (w Way) covers(from, to *Host) bool {
	return (w.From == nil || slices.Contains(w.From, from)) && (w.To == nil || slices.Contains(w.To, to))
}

// and returns the sum of two troubles of the same packets.
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

// either returns the probability of at least one of two independent events.
func either(p, q float64) float64 { return p + q - p*q }

func narrower(a, b int) int {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// A fate has the delay of each delivery of one packet.
type fate []time.Duration

// random is the source of randomness of a network, such as [rand.Rand].
type random interface {
	Float64() float64
	Int64N(n int64) int64
}

// draw draws the fate of one packet. The backlog is the time until the previous packets have passed.
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

// maxBacklog limits the delay by a limited rate. Further packets are dropped, as by routers.
const maxBacklog = 500 * time.Millisecond

// takes returns the time for which a packet occupies a way.
func (t Trouble) takes(size int) time.Duration {
	if t.Rate == 0 {
		return 0
	}
	return time.Duration(size) * time.Second / time.Duration(t.Rate)
}
