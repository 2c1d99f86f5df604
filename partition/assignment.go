package partition

import (
	"iter"
	"math"
	"math/bits"
	"sort"

	"github.com/leasehold-dev/leasehold"
)

// A Slot gives the keys from Start on to an owner, up to the start of the next
// slot or the end of the key space.
type Slot struct {
	Start leasehold.Key
	Owner leasehold.OwnerID // "" is nobody
}

// An Assignment says who should have each key of the key space. It is
// canonical: slots are sorted by Start, the first Start is 0, and neighbours
// have different owners, so that equal assignments have equal slots.
//
// The nil Assignment stands for "not decided yet"; its methods treat it as one
// that gives everything to nobody.
type Assignment []Slot

// Append returns a with the keys from start on given to owner. If the last
// slot is owner's already, it is only extended, which keeps the assignment
// canonical. Starts must rise from 0; [Validate] finds it if they do not.
//
// Like the builtin, it may write into spare capacity behind a.
func (a Assignment) Append(start leasehold.Key, owner leasehold.OwnerID) Assignment {
	if n := len(a); n > 0 && a[n-1].Owner == owner {
		return a
	}
	return append(a, Slot{start, owner})
}

// OwnerAt returns the owner of k, "" if it is nobody's. It takes logarithmic
// time.
func (a Assignment) OwnerAt(k leasehold.Key) leasehold.OwnerID {
	if i := a.index(k); i >= 0 {
		return a[i].Owner
	}
	return ""
}

// index returns which slot k is in, or -1 if a is nil.
func (a Assignment) index(k leasehold.Key) int {
	return sort.Search(len(a), func(i int) bool { return a[i].Start > k }) - 1
}

// All yields the slots in order, as ranges with their owners.
func (a Assignment) All() iter.Seq2[leasehold.Range, leasehold.OwnerID] {
	return func(yield func(leasehold.Range, leasehold.OwnerID) bool) {
		for i := range a {
			if !yield(a.rangeAt(i), a[i].Owner) {
				return
			}
		}
	}
}

// Ranges yields the ranges of owner in order. Ranges of "" yields those that
// nobody has.
func (a Assignment) Ranges(owner leasehold.OwnerID) iter.Seq[leasehold.Range] {
	return func(yield func(leasehold.Range) bool) {
		for i := range a {
			if a[i].Owner == owner && !yield(a.rangeAt(i)) {
				return
			}
		}
	}
}

func (a Assignment) rangeAt(i int) leasehold.Range {
	r := leasehold.Range{Start: a[i].Start}
	if i+1 < len(a) {
		r.Limit = a[i+1].Start
	}
	return r
}

// Share returns the fraction of the key space that owner has, from 0 to 1.
func (a Assignment) Share(owner leasehold.OwnerID) float64 {
	return a.Shares()[owner]
}

// Shares returns the fraction of the key space that each owner has, with ""
// for what nobody has. Owners without keys are not in it.
func (a Assignment) Shares() map[leasehold.OwnerID]float64 {
	shares := make(map[leasehold.OwnerID]float64)
	for r, owner := range a.All() {
		shares[owner] += float64(r.Size()) / spaceSize
	}
	return shares
}

// With returns the assignment that gives r to owner and everything else to whom
// a gives it.
func (a Assignment) With(r leasehold.Range, owner leasehold.OwnerID) Assignment {
	out := make(Assignment, 0, len(a)+2)
	for part, before := range a.orNobody().All() {
		in, overlaps := part.Intersect(r)
		if !overlaps {
			out = out.Append(part.Start, before)
			continue
		}
		if in.Start > part.Start {
			out = out.Append(part.Start, before)
		}
		out = out.Append(in.Start, owner)
		if in.Limit != part.Limit {
			out = out.Append(in.Limit, before)
		}
	}
	return out
}

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
