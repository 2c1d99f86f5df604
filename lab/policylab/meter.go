package policylab

import (
	"iter"
	"math"
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/partition"
)

// smoothing is the time constant of the owners' estimates.
const smoothing = 15 * time.Second

// A meter is what all owners know of the load: what they hold, in cells, with
// an estimate for each, and their hottest keys.
type meter struct {
	holdings []holding // sorted; they cover the key space
	cells    []cell    // of all holdings, in order
	hot      []hotKey  // sorted by key

	perOwner int
	scale    float64 // requests per period that a cost of 1 makes
	decay    float64 // of an estimate, in one period
	period   time.Duration
	rng      *rand.Rand // nil: what owners count is exact

	costs   []float64 // what the cells truly cost,
	charged *Load     // by this load; nil if that is not known
	report  partition.Loads
}

// A hotKey is a key that may be worth telling of.
type hotKey struct {
	key   leasehold.Key
	rate  float64 // the owner's estimate, in requests per period
	cell  int
	owner int
}

func newMeter(c *Config, scale float64) *meter {
	m := &meter{
		holdings: []holding{{span: span{owner: nobody}}},
		cells:    make([]cell, 1),
		perOwner: c.Cells,
		scale:    scale,
		decay:    math.Exp(-c.Period.Seconds() / smoothing.Seconds()),
		period:   c.Period,
	}
	if c.Noise {
		m.rng = rand.New(rand.NewPCG(c.Seed, 0x6e6f697365)) // "noise": another stream than that of who leaves
	}
	return m
}

// assign gives the key space to owners anew. What they know of keys that stay
// with them they keep: what a cell counted is divided by size among the cells
// that replace it, except for its hot keys, of which it is known where they are.
func (m *meter) assign(to []span, owners, period int, moved func(r leasehold.Range, from, to int)) {
	changed := false
	next := reassign(m.holdings, to, period, func(r leasehold.Range, from, to int) {
		changed = true
		moved(r, from, to)
	})
	if !changed && len(next) == len(m.holdings) {
		return
	}
	cells := cut(next, owners, m.perOwner)
	for _, h := range m.hot {
		m.cells[h.cell].rate = max(0, m.cells[h.cell].rate-h.rate)
	}
	divide(m.cells, cells)
	at := 0
	for i := range m.hot {
		h := &m.hot[i]
		for at+1 < len(cells) && cells[at+1].start <= h.key {
			at++
		}
		cells[at].rate += h.rate
		h.cell = at
	}
	m.holdings, m.cells, m.charged = next, cells, nil
}

// divide gives the rates of some cells to others, by the keys that they share.
func divide(from, to []cell) {
	at := leasehold.Key(0)
	for i, j := 0, 0; ; {
		endFrom, endTo := limitOf(from, i), limitOf(to, j)
		end := min(endFrom-1, endTo-1) + 1
		to[j].rate += from[i].rate * (distance(at, end) / distance(from[i].start, endFrom))
		if end == 0 {
			return
		}
		at = end
		if end == endFrom {
			i++
		}
		if end == endTo {
			j++
		}
	}
}

// limitOf is where a cell ends.
func limitOf(cells []cell, i int) leasehold.Key {
	if i+1 < len(cells) {
		return cells[i+1].start
	}
	return 0
}

// cellsOf yields the indices of a holding's cells.
func (m *meter) cellsOf(i int) iter.Seq[int] {
	end := len(m.cells)
	if i+1 < len(m.holdings) {
		end = m.holdings[i+1].cells
	}
	return func(yield func(int) bool) {
		for j := m.holdings[i].cells; j < end; j++ {
			if !yield(j) {
				return
			}
		}
	}
}
