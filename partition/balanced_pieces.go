package partition

import (
	"math"

	"github.com/leasehold-dev/leasehold"
)

// A candidate is a piece of a donor's part that may move to another member.
type candidate struct {
	part  int32
	span  span
	cost  float64
	to    int32   // the target
	score float64 // relief per price
}

// rangePrice is the price of another range in the table, as a fraction of the keys of an
// initial range.
const rangePrice = 0.25

// rounding prevents a piece that is cut to fit from being too large by a rounding error.
const rounding = 1 - 1e-9

// best returns the piece of part i with the highest score for donor m: the relief per
// moved key and added range.
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

// admissible sets the target and the score of c, and reports whether
// the move is admissible: it relieves the donor, does not drop the donor below its lower bound or raise the
// target above its upper bound, and keeps budget and limits.
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

// fill sets the target of c: the owner of an adjacent part, so that the table does not
// grow, or else the member with the most room. It reports whether there is a target within
// budget and limits.
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

// takes reports whether the owner of the adjacent part n can take c, and sets it as
// the target.
func (r *relief) takes(n int32, c *candidate) bool {
	if n == none {
		return false
	}
	c.to = r.parts[n].owner
	return !r.donor[c.to] && !r.giant[c.to] && r.room(c.to) >= c.cost && r.withinLimits(c)
}

// withinLimits reports whether the table is within its limits after the move c.
func (r *relief) withinLimits(c *candidate) bool {
	all, ofTo, ofFrom := r.growth(c.part, c.span, c.to)
	to, from := r.slots[c.to]+ofTo, r.slots[r.parts[c.part].owner]+ofFrom
	limits := r.in.Limits
	return (all <= 0 || r.live+all <= limits.maxRanges()) &&
		(ofTo <= 0 || limits.perOwner(to) == to) && (ofFrom <= 0 || limits.perOwner(from) == from)
}

// dense returns the run of atoms with the highest cost above its cost at
// the given density: the part of a range with most of the work, if there is
// one.
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

// costWithin returns the cost of s, which begins or ends with the
// run of atoms.
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

// allKeys is a limit on keys that means no limit.
const allKeys = math.MaxUint64

// An end of a run of atoms.
type end bool

const (
	fromStart end = false
	fromEnd   end = true
)

// edge returns the keys at one end of a run of atoms that cost at most and about want,
// and are at most most keys. It cuts between atoms if the result is
// close to want, and otherwise splits an atom. It reports false if there is no such key:
// the first key alone costs more.
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

// closeTo is the fraction of the wanted cost that is sufficient for a cut between atoms.
const closeTo = 0.75
