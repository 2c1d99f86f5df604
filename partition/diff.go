package partition

import (
	"iter"
	"math"
	"math/bits"

	"github.com/leasehold-dev/leasehold"
)

// Reassigned is a run of keys that two assignments give to different owners.
type Reassigned struct {
	leasehold.Range
	From, To leasehold.OwnerID // "" is nobody
}

// Diff returns what changes hands between two assignments, in the order of
// keys. Neighbours that go from the same owner to the same owner are one. It
// takes linear time.
func Diff(from, to Assignment) []Reassigned {
	var out []Reassigned
	for r := range changes(from, to) {
		if n := len(out); n > 0 {
			if l := &out[n-1]; l.Limit == r.Start && l.From == r.From && l.To == r.To {
				l.Limit = r.Limit
				continue
			}
		}
		out = append(out, r)
	}
	return out
}

// Moved returns the share of all keys, 0 to 1, that have an owner in from and
// another one, or none, in to: whose state must move, or is lost.
func Moved(from, to Assignment) float64 {
	keys, more := uint64(0), uint64(0)
	for r := range changes(from, to) {
		if r.From == "" {
			continue
		}
		if keys, more = bits.Add64(keys, r.Size(), 0); more > 0 {
			return 1 // all keys are one more than fit
		}
	}
	return math.Ldexp(float64(keys), -64)
}

// changes yields what changes hands, cut at the bounds of either assignment.
func changes(from, to Assignment) iter.Seq[Reassigned] {
	from, to = from.orNobody(), to.orNobody()
	return func(yield func(Reassigned) bool) {
		for i, j := 0, 0; i < len(from) && j < len(to); {
			a, b := from.rangeAt(i), to.rangeAt(j)
			both, _ := a.Intersect(b)
			if from[i].Owner != to[j].Owner && !yield(Reassigned{both, from[i].Owner, to[j].Owner}) {
				return
			}
			if a.Last() == both.Last() {
				i++
			}
			if b.Last() == both.Last() {
				j++
			}
		}
	}
}

// orNobody returns a, or for nil what it stands for.
func (a Assignment) orNobody() Assignment {
	if len(a) == 0 {
		return Assignment{{}}
	}
	return a
}
