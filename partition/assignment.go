package partition

import (
	"iter"
	"math"
	"math/bits"
	"sort"

	"github.com/leasehold-dev/leasehold"
)

// A Slot assigns the keys from Start on to an owner, up to the start of the next
// slot or the end of the key space.
type Slot struct {
	Start leasehold.Key
	Owner leasehold.OwnerID // "" means no owner
}

// An Assignment assigns each key of the key space to an owner. It is
// canonical: slots are sorted by Start, the first Start is 0, and neighbors
// have different owners, so that equal assignments have equal slots.
//
// The nil Assignment means that there is no decision yet; for its methods, no key has an
// owner.
type Assignment []Slot

// Append returns a with the keys from start on assigned to owner. If owner has the last
// slot already, that slot is extended, which keeps the assignment
// canonical. Starts must increase from 0; [Validate] rejects other starts.
//
// Like the builtin, it may write to the spare capacity of a.
func (a Assignment) Append(start leasehold.Key, owner leasehold.OwnerID) Assignment {
	if n := len(a); n > 0 && a[n-1].Owner == owner {
		return a
	}
	return append(a, Slot{start, owner})
}

// OwnerAt returns the owner of k, "" if it has none. It takes logarithmic
// time.
func (a Assignment) OwnerAt(k leasehold.Key) leasehold.OwnerID {
	if i := a.index(k); i >= 0 {
		return a[i].Owner
	}
	return ""
}

// index returns the index of the slot that contains k, or -1 if a is nil.
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

// Ranges yields the ranges of owner in order; for "" the ranges without an owner.
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

// Share returns the owner's fraction of the key space, from 0 to 1.
func (a Assignment) Share(owner leasehold.OwnerID) float64 {
	return a.Shares()[owner]
}

// Shares returns each owner's fraction of the key space, and for "" the fraction without
// an owner. It does not contain owners without keys.
func (a Assignment) Shares() map[leasehold.OwnerID]float64 {
	shares := make(map[leasehold.OwnerID]float64)
	for r, owner := range a.All() {
		shares[owner] += float64(r.Size()) / spaceSize
	}
	return shares
}

// With returns a copy of a with r assigned to owner.
func (a Assignment) With(r leasehold.Range, owner leasehold.OwnerID) Assignment {
	out := make(Assignment, 0, len(a)+2)
	for part, before := range a.orEmpty().All() {
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

// Reassigned is a range with different owners in two assignments.
type Reassigned struct {
	leasehold.Range
	From, To leasehold.OwnerID // "" means no owner
}

// Diff returns the ranges with different owners in two assignments, in the order of
// keys. Adjacent ranges with the same From and To are merged. It
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
// another one, or none, in to. The state of these keys must move, or is lost.
func Moved(from, to Assignment) float64 {
	keys, more := uint64(0), uint64(0)
	for r := range changes(from, to) {
		if r.From == "" {
			continue
		}
		if keys, more = bits.Add64(keys, r.Size(), 0); more > 0 {
			return 1 // overflow: all 2^64 keys
		}
	}
	return math.Ldexp(float64(keys), -64)
}

// changes yields the ranges with different owners, split at the bounds of both assignments.
func changes(from, to Assignment) iter.Seq[Reassigned] {
	from, to = from.orEmpty(), to.orEmpty()
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

// orEmpty returns a, or for nil the assignment without owners.
func (a Assignment) orEmpty() Assignment {
	if len(a) == 0 {
		return Assignment{{}}
	}
	return a
}
