package partition

import (
	"math"

	"github.com/leasehold-dev/leasehold"
)

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
