package partition

import (
	"cmp"

	"github.com/leasehold-dev/leasehold"
)

// Loads say how much work per second the keys cost their owners, as these have
// measured it. The unit is the application's: requests, unless it counts
// something else. The zero Loads say that nothing is known.
type Loads struct {
	// Cells are sorted and do not overlap. Of keys outside of all cells nothing
	// is known: their owner is new, or has not said.
	Cells []Cell
	// Hot are single keys that cost much, sorted, each once. What they cost is
	// part of their cell's rate.
	Hot []HotKey
}

// A Cell is a range of keys and the work per second that they cost together.
type Cell struct {
	Range leasehold.Range
	Rate  float64 // 0 to MaxRate
}

// A HotKey is a key and the work per second that it costs.
type HotKey struct {
	Key  leasehold.Key
	Rate float64 // 0 to MaxRate
}

// MaxRate is the most that a cell or a key can cost. It is far above what any
// server does, and small enough that sums stay exact enough to compare.
const MaxRate = 1e15

// validRate reports whether a rate can be one. So written, NaN cannot.
func validRate(r float64) bool { return r >= 0 && r <= MaxRate }

// Validate reports what is wrong with the loads.
func (l Loads) Validate() error {
	for i, c := range l.Cells {
		switch {
		case !c.Range.Valid():
			return invalidInput(c.Range.String(), "a cell of the loads is not a range")
		case !validRate(c.Rate):
			return invalidInput(c.Range.String(), "load is %v, want 0 to %g", c.Rate, float64(MaxRate))
		}
		if i > 0 {
			if before := l.Cells[i-1].Range; before.Limit == 0 || before.Limit > c.Range.Start {
				return invalidInput(c.Range.String(), "cells overlap or are not sorted: %v comes before", before)
			}
		}
	}
	for i, h := range l.Hot {
		if !validRate(h.Rate) {
			return invalidInput(h.Key.String(), "load is %v, want 0 to %g", h.Rate, float64(MaxRate))
		}
		if i > 0 && cmp.Compare(l.Hot[i-1].Key, h.Key) >= 0 {
			return invalidInput(h.Key.String(), "hot keys are not sorted, or one is there twice")
		}
	}
	return nil
}
