package partition

import (
	"math"

	"github.com/leasehold-dev/leasehold"
)

// A candidate is a piece of a donor's part that may be given to another member.
type candidate struct {
	part  int32
	span  span
	cost  float64
	to    int32   // who would get it
	score float64 // relief for what it takes; the best comes first
}

// rangePrice is what another range in the table costs, in moved keys: as much
// as this part of the keys that a range has in the beginning.
const rangePrice = 0.25

// rounding keeps a piece that is cut to fit from being too large by the last
// bit.
const rounding = 1 - 1e-9

// best returns the piece of part i whose move helps donor m most for the keys
// that move and the ranges that it adds.
func (r *relief) best(m, i int32) (candidate, bool) {
	to, ok := r.rooms.top()
	if !ok {
		return candidate{}, false
	}
	atoms := r.atoms(r.parts[i].span)
	want := rounding * min(r.excess(m), r.room(to))
	var best candidate
	consider := func(s span, cost float64) {
		c := candidate{part: i, span: s, cost: cost}
		if r.admissible(m, &c) && c.score > best.score {
			best = c
		}
	}
	consider(r.parts[i].span, r.parts[i].cost)
	for n := range atoms {
		if a := &atoms[n]; a.single() {
			consider(a.span, a.cost)
		}
	}
	runs := [][]atom{atoms, dense(atoms, 2*r.parts[i].cost/r.parts[i].share())}
	for _, run := range runs {
		for _, from := range []end{fromStart, fromEnd} {
			if s, ok := edge(run, want, r.budget, from); ok {
				consider(s, costWithin(run, s))
			}
		}
	}
	return best, best.score > 0
}

// admissible finds who would get c and how good that is, and reports whether
// it may be done: it relieves, the donor does not fall too low, nobody rises
// too high, and budget and limits are kept.
func (r *relief) admissible(m int32, c *candidate) bool {
	excess, fair := r.excess(m), r.fair(m)
	relief := min(c.cost, excess)
	if relief < enough*fair || c.cost > excess+(aim+low)*r.Tolerance*fair || !r.fill(c) {
		return false
	}
	more, _, _ := r.growth(c.part, c.span, c.to)
	if more > 0 && r.live+more > 4*r.normal && c.span.start != c.span.last {
		return false
	}
	share := r.weight[m] / r.weights
	price := c.span.share()/share + rangePrice/float64(r.Ranges)*float64(max(more, 0))
	c.score = relief / fair / (price + 1e-9)
	return true
}

// fill finds who would get c: an owner beside it, so that the table does not
// grow, or else whoever has the most room. It reports whether there is one, and
// budget and limits allow it.
func (r *relief) fill(c *candidate) bool {
	if c.span.keys() > r.budget {
		return false
	}
	x := &r.parts[c.part]
	if c.span.start == x.start && r.takes(x.prev, c) || c.span.last == x.last && r.takes(x.next, c) {
		return true
	}
	to, ok := r.rooms.top()
	c.to = to
	return ok && r.room(to) >= c.cost && r.withinLimits(c)
}

// takes reports whether the owner of part n, a neighbour, can take c, and notes
// it.
func (r *relief) takes(n int32, c *candidate) bool {
	if n == none {
		return false
	}
	c.to = r.parts[n].owner
	return !r.donor[c.to] && !r.giant[c.to] && r.room(c.to) >= c.cost && r.withinLimits(c)
}

// withinLimits reports whether the table keeps to its limits if c is done.
func (r *relief) withinLimits(c *candidate) bool {
	all, ofTo, ofFrom := r.growth(c.part, c.span, c.to)
	to, from := r.slots[c.to]+ofTo, r.slots[r.parts[c.part].owner]+ofFrom
	limits := r.in.Limits
	return (all <= 0 || r.live+all <= limits.maxRanges()) &&
		(ofTo <= 0 || limits.perOwner(to) == to) && (ofFrom <= 0 || limits.perOwner(from) == from)
}

// dense returns the run of atoms that costs most above what it would cost at
// the density given: the part of a range where most of the work is, if there is
// such a part.
func dense(atoms []atom, density float64) []atom {
	best, sum, from, start, limit := 0.0, 0.0, 0, 0, 0
	for n := range atoms {
		if sum <= 0 {
			sum, from = 0, n
		}
		if sum += atoms[n].cost - density*atoms[n].share(); sum > best {
			best, start, limit = sum, from, n+1
		}
	}
	return atoms[start:limit]
}

// costWithin returns what the keys of s cost, which begins or ends where the
// run of atoms does.
func costWithin(run []atom, s span) float64 {
	cost := 0.0
	for n := range run {
		a := &run[n]
		switch {
		case a.last < s.start || a.start > s.last:
		case a.start >= s.start && a.last <= s.last:
			cost += a.cost
		default:
			in := span{max(a.start, s.start), min(a.last, s.last)}
			cost += a.cost * (in.share() / a.share())
		}
	}
	return cost
}

// allKeys is a bound on keys that bounds nothing.
const allKeys = math.MaxUint64

// An end of a run of atoms.
type end bool

const (
	fromStart end = false
	fromEnd   end = true
)

// edge returns the keys at one end of a run of atoms that cost about want
// together, no more, and are no more than most. It cuts between atoms if that
// comes near, and through one if not. False means that there is no such key:
// the first is too costly by itself.
func edge(atoms []atom, want float64, most uint64, from end) (s span, ok bool) {
	cost, keys := 0.0, uint64(0)
	for n := range atoms {
		a := &atoms[n]
		if from == fromEnd {
			a = &atoms[len(atoms)-1-n]
		}
		cut := a.span
		if cost+a.cost > want || a.keys() > most-keys {
			if cost >= closeTo*want && ok {
				return s, ok
			}
			part := a.keys()
			if a.cost > want-cost {
				part = uint64(float64(part) * (max(0, want-cost) / a.cost))
			}
			if part = min(part, most-keys, a.keys()); part == 0 {
				return s, ok
			}
			if from == fromEnd {
				cut.start = a.last - leasehold.Key(part-1)
			} else {
				cut.last = a.start + leasehold.Key(part-1)
			}
		}
		switch {
		case !ok:
			s, ok = cut, true
		case from == fromEnd:
			s.start = cut.start
		default:
			s.last = cut.last
		}
		if cut != a.span {
			return s, ok
		}
		cost += a.cost
		keys += a.keys()
	}
	return s, ok
}

// closeTo is which part of what is wanted is enough to cut between atoms.
const closeTo = 0.75
