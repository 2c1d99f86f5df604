package keyrange

import (
	"iter"

	"github.com/leasehold-dev/leasehold"
)

// All yields the ranges in order with their values. The map must not be changed during the
// iteration.
func (m *Map[V]) All() iter.Seq2[leasehold.Range, V] { return m.Within(leasehold.All) }

// Within yields the parts of r in order with their values, nothing if r is not valid. The map must
// not be changed during the iteration.
func (m *Map[V]) Within(r leasehold.Range) iter.Seq2[leasehold.Range, V] {
	return func(yield func(leasehold.Range, V) bool) {
		p, more := m.find(r.Start), true
		for more {
			part, ok := m.rangeAt(p).Intersect(r)
			if !ok || !yield(part, m.get(p).value) {
				return
			}
			p, more = m.next(p)
		}
	}
}

// Diff yields, in order, the parts of the key space where a and b have different values, with both
// values. Neither map may be changed during the iteration.
func Diff[V comparable](a, b *Map[V]) iter.Seq2[leasehold.Range, [2]V] {
	return func(yield func(leasehold.Range, [2]V) bool) {
		for r, pair := range Zip(a, b) {
			if pair.A != pair.B && !yield(r, [2]V{pair.A, pair.B}) {
				return
			}
		}
	}
}

// A Pair holds the values that two maps give to the same keys.
type Pair[A, B comparable] struct {
	A A
	B B
}

// Zip yields the key space in order, split at the boundaries of both maps, with the values of both.
// Neither map may be changed during the iteration.
func Zip[A, B comparable](a *Map[A], b *Map[B]) iter.Seq2[leasehold.Range, Pair[A, B]] {
	return func(yield func(leasehold.Range, Pair[A, B]) bool) {
		var i, j place
		for more := true; more; {
			ra, rb := a.rangeAt(i), b.rangeAt(j)
			part, _ := ra.Intersect(rb)
			if !yield(part, Pair[A, B]{a.get(i).value, b.get(j).value}) {
				return
			}
			// Both maps cover the key space, so both end at the same time.
			advanceA, advanceB := ra.Last() <= rb.Last(), rb.Last() <= ra.Last()
			if advanceA {
				i, more = a.next(i)
			}
			if advanceB {
				j, more = b.next(j)
			}
		}
	}
}
