package partition

import (
	"iter"

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
	lo, hi := 0, len(a) // the slot of k is before hi, and not before lo-1
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if a[mid].Start <= k {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1
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

// Share returns the fraction of the key space that owner has, from 0 to 1. It
// looks at every slot: for the shares of many owners use Shares.
func (a Assignment) Share(owner leasehold.OwnerID) float64 {
	var keys float64
	for r := range a.Ranges(owner) {
		keys += float64(r.Size())
	}
	return keys / spaceSize
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
