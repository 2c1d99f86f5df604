package partition

import (
	"cmp"
	"math"
	"sort"

	"github.com/leasehold-dev/leasehold"
)

// idle is the part of a key's cost that is independent of requests, for
// its memory and for future requests. Without it, keys without requests
// would cost nothing, and a policy could assign all of them to one member.
const idle = 0.01

// leastRate is the minimum total rate; below it all loads are ignored. It
// keeps quotients of rates finite.
const leastRate = 1e-12

// costs are the costs of keys, as shares of the total cost. Keys without
// a measured load have the average cost of the others; without any
// measured load, every key costs the same.
//
// It is built once per decision, in time linear in the loads, and is immutable. It shares
// the cells of the loads.
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
			hot = hot[1:] // in no cell: inconsistent
		}
		n, sum := 0, 0.0
		for n < len(hot) && hot[n].Key <= cell.Range.Last() {
			sum += hot[n].Rate
			n++
		}
		c.density[i] = idle + (1-idle)*math.Max(0, cell.Rate-sum)/mean/spanOf(cell.Range).share()
		scale := (1 - idle) / mean
		if sum > cell.Rate { // possible, because the two are measured separately
			scale *= cell.Rate / sum
		}
		for _, h := range hot[:n] {
			c.hot = append(c.hot, HotKey{h.Key, h.Rate * scale})
		}
		hot = hot[n:]
	}
	return c
}

// known reports whether there are measured loads.
func (c *costs) known() bool { return len(c.cells) > 0 }

// A span is the keys from start to last, inclusive.
type span struct{ start, last leasehold.Key }

func spanOf(r leasehold.Range) span { return span{r.Start, r.Last()} }

// keys returns the number of keys, one less for the whole key space.
func (s span) keys() uint64 {
	return leasehold.Range{Start: s.start, Limit: s.last + 1}.Size()
}

// share returns the span's share of all keys.
func (s span) share() float64 { return (float64(s.last-s.start) + 1) / spaceSize }

// An atom is a span of keys with equal costs.
type atom struct {
	span
	cost  float64
	known bool
}

// single reports whether the atom is one key, which cannot be split.
func (a *atom) single() bool { return a.start == a.last }

// A walker finds the atoms of spans in increasing order.
type walker struct {
	*costs
	cell, nextHot int // the first that are not before the current position
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

// divide appends run, which has one density, split at its hot keys.
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

// A measure is the total cost of a span.
type measure struct {
	cost  float64
	known float64       // the share of all keys that is in the span and has measured loads
	top   float64       // cost of the costliest single key
	topAt leasehold.Key // the costliest single key
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

// Loads are the loads of keys, in work per second, as their owners have
// measured them. The unit is requests, or a unit of the application.
// The zero Loads contain no measurements.
type Loads struct {
	// Cells are sorted and do not overlap. The loads of keys outside of all cells are
	// unknown: their owner is new, or has sent no report.
	Cells []Cell
	// Hot are single keys with high loads, sorted and without duplicates. Their rates are
	// part of their cell's rate.
	Hot []HotKey
}

// A Cell is a range with its total work per second.
type Cell struct {
	Range leasehold.Range
	Rate  float64 // 0 to MaxRate
}

// A HotKey is a key with its work per second.
type HotKey struct {
	Key  leasehold.Key
	Rate float64 // 0 to MaxRate
}

// MaxRate is the maximum rate of a cell or a key. It exceeds the rate of any
// server, and is small enough that sums stay sufficiently exact.
const MaxRate = 1e15

// validRate reports whether a rate is valid; NaN is not.
func validRate(r float64) bool { return r >= 0 && r <= MaxRate }

// Validate returns an error if the loads are invalid.
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
				return invalidInput(c.Range.String(), "cells overlap or are not sorted: the previous one is %v", before)
			}
		}
	}
	for i, h := range l.Hot {
		if !validRate(h.Rate) {
			return invalidInput(h.Key.String(), "load is %v, want 0 to %g", h.Rate, float64(MaxRate))
		}
		if i > 0 && cmp.Compare(l.Hot[i-1].Key, h.Key) >= 0 {
			return invalidInput(h.Key.String(), "hot keys are not sorted or contain a duplicate")
		}
	}
	return nil
}
