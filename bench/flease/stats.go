package main

import (
	"time"

	"github.com/leasehold-dev/leasehold/bench/kit"
)

// A turn is what happened in one: how many leases were acquired, and how long it
// took from the first request to the last answer.
type turn struct {
	Leases int
	Took   time.Duration
	CPU    time.Duration // of all processes that took part, clients too
}

// rate returns leases per second.
func (t turn) rate() float64 {
	if t.Took <= 0 {
		return 0
	}
	return float64(t.Leases) / t.Took.Seconds()
}

// effort returns the time of processors per lease.
func (t turn) effort() time.Duration {
	if t.Leases == 0 {
		return 0
	}
	return t.CPU / time.Duration(t.Leases)
}

// plus returns both turns, one after the other.
func (t turn) plus(o turn) turn {
	return turn{t.Leases + o.Leases, t.Took + o.Took, t.CPU + o.CPU}
}

// A summary is what several turns came to, in leases per second.
type summary struct {
	kit.Summary
	Effort float64 // the median of the processors' microseconds per lease
}

// summarise returns the summary of turns; of none, zeros.
func summarise(turns []turn) summary {
	if len(turns) == 0 {
		return summary{}
	}
	var rates, efforts []float64
	for _, t := range turns {
		rates = append(rates, t.rate())
		efforts = append(efforts, float64(t.effort())/float64(time.Microsecond))
	}
	return summary{Summary: kit.Summarise(rates), Effort: kit.Median(efforts)}
}

// change returns by which share b differs from a: -0.1 if it is a tenth less.
func change(a, b float64) float64 {
	if a == 0 {
		return 0
	}
	return b/a - 1
}

// pairedChange returns the median change from each turn to the one beside it.
// Turns that ran one after the other met the same machine; a slow minute then
// changes both, and not the result.
func pairedChange(before, after []turn) float64 {
	n := min(len(before), len(after))
	if n == 0 {
		return 0
	}
	changes := make([]float64, 0, n)
	for i := range n {
		changes = append(changes, change(before[i].rate(), after[i].rate()))
	}
	return kit.Median(changes)
}
