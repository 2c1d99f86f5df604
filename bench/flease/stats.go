package main

import (
	"time"

	"github.com/leasehold-dev/leasehold/bench/kit"
)

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
		rates = append(rates, t.Rate())
		efforts = append(efforts, float64(t.Effort())/float64(time.Microsecond))
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
		changes = append(changes, change(before[i].Rate(), after[i].Rate()))
	}
	return kit.Median(changes)
}
