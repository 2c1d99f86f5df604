package partition

import (
	"cmp"
	"math"
	"sort"

	"github.com/leasehold-dev/leasehold"
)

// idle is the part of a key's cost that it has however seldom it is asked for:
// it takes memory, and work may come. Without it, keys that nobody asks for
// would all be the same to a policy, and could pile up at one member.
const idle = 0.01

// leastRate is what must be done in all per second for any of it to count. It
// keeps quotients of rates finite.
const leastRate = 1e-12

// costs is what keys cost, as shares of what all keys cost together. Where
// nothing is known, keys cost as much as the others do on average; if nothing
// is known at all, or nothing is done, every key costs the same.
//
// It is made once for a decision and does not change: linear in the loads, and
// it shares their cells.
type costs struct {
	cells   []Cell
	density []float64 // of each cell without its hot keys; the mean of all keys is 1
	hot     []HotKey  // those inside of cells, with shares for rates
}

func newCosts(l Loads) *costs {
	rate, share := 0.0, 0.0
	for i := range l.Cells {
		rate += l.Cells[i].Rate
		share += spanOf(l.Cells[i].Range).share()
	}
	if rate < leastRate {
		return &costs{}
	}
	c := &costs{cells: l.Cells, density: make([]float64, len(l.Cells))}
	mean, hot := rate/share, l.Hot
	for i := range l.Cells {
		cell := &l.Cells[i]
		for len(hot) > 0 && hot[0].Key < cell.Range.Start {
			hot = hot[1:] // in no cell: it contradicts itself
		}
		n, sum := 0, 0.0
		for n < len(hot) && hot[n].Key <= cell.Range.Last() {
			sum += hot[n].Rate
			n++
		}
		c.density[i] = idle + (1-idle)*math.Max(0, cell.Rate-sum)/mean/spanOf(cell.Range).share()
		scale := (1 - idle) / mean
		if sum > cell.Rate { // measured apart, the two need not agree
			scale *= cell.Rate / sum
		}
		for _, h := range hot[:n] {
			c.hot = append(c.hot, HotKey{h.Key, h.Rate * scale})
		}
		hot = hot[n:]
	}
	return c
}

// known reports whether anything is known.
func (c *costs) known() bool { return len(c.cells) > 0 }

// A span is a run of keys, from start to last, both inside.
type span struct{ start, last leasehold.Key }

func spanOf(r leasehold.Range) span { return span{r.Start, r.Last()} }

// keys is the number of keys, one too low for the whole key space.
func (s span) keys() uint64 {
	return leasehold.Range{Start: s.start, Limit: s.last + 1}.Size()
}

// share is the number of keys as a share of all.
func (s span) share() float64 { return (float64(s.last-s.start) + 1) / spaceSize }

// An atom is a run of keys that cost the same each, as far as is known.
type atom struct {
	span
	cost  float64
	known bool
}

// single reports whether the atom is one key, which cannot be divided.
func (a *atom) single() bool { return a.start == a.last }

// A walker finds the atoms of spans that come in rising order.
type walker struct {
	*costs
	cell, nextHot int // the first that are not before the place reached
}

// seek returns a walker for spans from key on, in logarithmic time.
func (c *costs) seek(key leasehold.Key) walker {
	return walker{
		costs:   c,
		cell:    sort.Search(len(c.cells), func(i int) bool { return c.cells[i].Range.Last() >= key }),
		nextHot: sort.Search(len(c.hot), func(i int) bool { return c.hot[i].Key >= key }),
	}
}

// atoms appends the atoms of s to buf.
func (w *walker) atoms(buf []atom, s span) []atom {
	for at := s.start; ; {
		for w.cell < len(w.cells) && w.cells[w.cell].Range.Last() < at {
			w.cell++
		}
		run, density, known := span{at, s.last}, 1.0, false
		if w.cell < len(w.cells) {
			cell := w.cells[w.cell].Range
			if known = cell.Start <= at; known {
				run.last, density = min(run.last, cell.Last()), w.density[w.cell]
			} else {
				run.last = min(run.last, cell.Start-1)
			}
		}
		buf = w.divide(buf, run, density, known)
		if run.last == s.last {
			return buf
		}
		at = run.last + 1
	}
}

// divide appends run, which is of one density, in pieces between its hot keys.
func (w *walker) divide(buf []atom, run span, density float64, known bool) []atom {
	for w.nextHot < len(w.hot) && w.hot[w.nextHot].Key <= run.last {
		h := w.hot[w.nextHot]
		w.nextHot++
		if h.Key < run.start {
			continue
		}
		if run.start < h.Key {
			before := span{run.start, h.Key - 1}
			buf = append(buf, atom{before, density * before.share(), known})
		}
		one := span{h.Key, h.Key}
		buf = append(buf, atom{one, density*one.share() + h.Rate, known})
		if h.Key == run.last {
			return buf
		}
		run.start = h.Key + 1
	}
	return append(buf, atom{run, density * run.share(), known})
}

// A measure is what the keys of a span cost together.
type measure struct {
	cost  float64
	known float64       // share of all keys, of those about which something is known
	top   float64       // what the costliest single key costs
	topAt leasehold.Key // and which it is
}

func measureAtoms(atoms []atom) measure {
	var m measure
	for i := range atoms {
		a := &atoms[i]
		m.cost += a.cost
		if a.known {
			m.known += a.share()
		}
		if a.single() && a.cost > m.top {
			m.top, m.topAt = a.cost, a.start
		}
	}
	return m
}

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
