package policylab

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/partition"
)

// smoothing is the time constant of the owners' estimates.
const smoothing = 15 * time.Second

// A meter has the measurements of all owners: their holdings, in cells, with an estimate for each, and their
// hottest keys.
type meter struct {
	holdings []holding // sorted; they cover the key space
	cells    []cell    // of all holdings, in order
	hot      []hotKey  // sorted by key

	perOwner int
	scale    float64 // requests per period for a cost of 1
	decay    float64 // factor of an estimate in one period
	period   time.Duration
	rng      *rand.Rand // nil: exact counts

	costs   []float64 // true costs of the cells
	charged *Load     // the load of costs; nil if unknown
	report  partition.Loads
}

// A hotKey is a key that may be reported.
type hotKey struct {
	key   leasehold.Key
	rate  float64 // the owner's estimate, in requests per period
	cell  int
	owner int
}

func newMeter(c *Config, scale float64) *meter {
	m := &meter{
		holdings: []holding{{span: span{owner: noOwner}}},
		cells:    make([]cell, 1),
		perOwner: c.Cells,
		scale:    scale,
		decay:    math.Exp(-c.Period.Seconds() / smoothing.Seconds()),
		period:   c.Period,
	}
	if c.Noise {
		m.rng = rand.New(rand.NewPCG(c.Seed, 0x6e6f697365)) // "noise": independent of the stream of leaving owners
	}
	return m
}

// assign assigns the key space to owners. They keep their estimates of keys that they keep. The estimate of a
// replaced cell is divided by size among the cells that replace it, except for its hot keys, whose positions
// are known.
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

// divide distributes the rates of some cells to others, by their common keys.
func divide(from, to []cell) {
	overlay(from, to, func(i, j int, keys leasehold.Range) {
		to[j].rate += from[i].rate * (share(keys) / share(keysOf(from, i)))
	})
}

// cellsOf returns the index of a holding's first cell, and the one after its last.
func (m *meter) cellsOf(i int) (first, end int) {
	if i+1 < len(m.holdings) {
		return m.holdings[i].cells, m.holdings[i+1].cells
	}
	return m.holdings[i].cells, len(m.cells)
}

// A section is a part of a division of the key space. It ends where the next begins.
type section interface{ begin() leasehold.Key }

// limitOf returns the end of a section; 0 is the end of the key space.
func limitOf[S section](all []S, i int) leasehold.Key {
	if i+1 < len(all) {
		return all[i+1].begin()
	}
	return 0
}

func keysOf[S section](all []S, i int) leasehold.Range {
	return leasehold.Range{Start: all[i].begin(), Limit: limitOf(all, i)}
}

// overlay calls visit for each common range of a section of a and a section of b, from left to right.
func overlay[A, B section](a []A, b []B, visit func(i, j int, keys leasehold.Range)) {
	at := leasehold.Key(0)
	for i, j := 0, 0; ; {
		endA, endB := limitOf(a, i), limitOf(b, j)
		end := min(endA-1, endB-1) + 1 // 0, the end of the key space, is the largest
		visit(i, j, leasehold.Range{Start: at, Limit: end})
		if end == 0 {
			return
		}
		at = end
		if end == endA {
			i++
		}
		if end == endB {
			j++
		}
	}
}

// A span assigns the keys from start to the next span, or to the end of the key space, to an owner.
type span struct {
	start leasehold.Key
	owner int // index of an owner, or noOwner
}

func (s span) begin() leasehold.Key { return s.start }

const noOwner = -1

// A holding is a span, since the period when its owner got it. Adjacent holdings of the same owner have
// different periods.
type holding struct {
	span
	since int
	cells int // index of the first of its cells; they end where the next's begin
}

// settledAfter is the number of periods after which a range is merged with an adjacent one of its owner: both
// then have equally smoothed measurements.
const settledAfter = 2

// reassign returns the holdings after from is replaced by to in a period. It calls moved for each range that
// changes its owner, from left to right.
func reassign(from []holding, to []span, period int, moved func(r leasehold.Range, from, to int)) []holding {
	var next []holding
	overlay(from, to, func(i, j int, keys leasehold.Range) {
		h := holding{span{keys.Start, to[j].owner}, period, 0}
		if was := from[i].owner; was == h.owner {
			h.since = from[i].since
		} else {
			moved(keys, was, h.owner)
		}
		next = appendHolding(next, h, period)
	})
	return next
}

func appendHolding(to []holding, h holding, period int) []holding {
	if n := len(to); n > 0 && to[n-1].owner == h.owner {
		left := &to[n-1]
		youngest := max(left.since, h.since)
		if left.since == h.since || period-youngest >= settledAfter {
			left.since = youngest
			return to
		}
	}
	return append(to, h)
}

// A cell is a range with one count, from start to the next cell.
type cell struct {
	start leasehold.Key
	rate  float64 // the owner's estimate, in requests per period
}

func (c cell) begin() leasehold.Key { return c.start }

// cut divides holdings into cells like the owner library: all ranges of an owner into the same number of
// equal parts, a power of two. So an owner has at most perOwner cells, unless it has more ranges.
func cut(holdings []holding, owners, perOwner int) []cell {
	counts := make([]int, owners)
	for _, h := range holdings {
		if h.owner != noOwner {
			counts[h.owner]++
		}
	}
	var cells []cell
	for i := range holdings {
		h := &holdings[i]
		h.cells = len(cells)
		parts := 1
		if h.owner != noOwner {
			parts = max(1, perOwner/counts[h.owner])
		}
		cells = appendParts(cells, keysOf(holdings, i), bits.Len(uint(parts))-1)
	}
	return cells
}

// appendParts divides a range into 2^shift equal parts, or fewer if it has fewer keys.
func appendParts(cells []cell, r leasehold.Range, shift int) []cell {
	shift = min(shift, bits.Len64(r.Size())-1)
	for i := range uint64(1) << shift {
		// i times the size; the size minus 1 is used, because the size of the whole key space overflows.
		high, low := bits.Mul64(uint64(r.Last()-r.Start), i)
		low, carry := bits.Add64(low, i, 0)
		high += carry
		cells = append(cells, cell{start: r.Start + leasehold.Key(high<<(64-shift)|low>>shift)})
	}
	return cells
}
