// Package keyrange is arithmetic on ranges of keys: a total map from keys to
// values, kept as ranges, and sets of ranges.
//
// Both are sorted slices. A lease table has tens of thousands of ranges and
// changes a few at a time, and at that size a binary search and a memmove are
// faster than a tree, smaller, and easier to be sure of.
package keyrange

import (
	"iter"
	"slices"

	"github.com/leasehold-dev/leasehold"
)

// A Map gives every key of the key space a value. It is kept canonical:
// neighbouring ranges have different values, so that two maps which give the
// same values have the same ranges, and the map is as small as it can be.
//
// [NewMap] and [Builder] make maps; the zero Map is not one.
//
// A Map is not safe for concurrent use; one that is no longer changed may be
// read from many goroutines.
type Map[V comparable] struct {
	// segments is sorted by start, the first start is 0, and no two
	// neighbours have equal values. A segment ends where the next one starts.
	segments []segment[V]
}

type segment[V comparable] struct {
	start leasehold.Key
	value V
}

// A Segment is a range of keys that share a value.
type Segment[V comparable] struct {
	Range leasehold.Range
	Value V
}

// NewMap returns a map that gives v to every key.
func NewMap[V comparable](v V) *Map[V] {
	return &Map[V]{segments: []segment[V]{{value: v}}}
}

// Len returns the number of ranges.
func (m *Map[V]) Len() int { return len(m.segments) }

// Clone returns a copy that shares nothing with m.
func (m *Map[V]) Clone() *Map[V] { return &Map[V]{segments: slices.Clone(m.segments)} }

// At returns the value of k and the range around k that shares it. It takes
// logarithmic time.
func (m *Map[V]) At(k leasehold.Key) (leasehold.Range, V) {
	i := m.index(k)
	return m.rangeAt(i), m.segments[i].value
}

// index returns the position of the segment that contains k.
func (m *Map[V]) index(k leasehold.Key) int {
	// By hand: sort.Search calls its function at every step and takes a third
	// longer. The first segment that starts beyond k is in [lo, hi].
	lo, hi := 0, len(m.segments)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if m.segments[mid].start <= k {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1
}

func (m *Map[V]) rangeAt(i int) leasehold.Range {
	r := leasehold.Range{Start: m.segments[i].start}
	if i+1 < len(m.segments) {
		r.Limit = m.segments[i+1].start
	}
	return r
}

// Set gives v to every key of r, splitting and merging ranges as needed. A
// range that is not valid holds no key, and changes nothing.
//
// It takes logarithmic time if the number of ranges stays the same, and
// otherwise linear time with a small constant, to move what lies behind. To
// change most of a large map, build another.
func (m *Map[V]) Set(r leasehold.Range, v V) {
	if !r.Valid() {
		return
	}
	lo := m.index(r.Start)
	hi := lo // most changes are within one segment
	if m.rangeAt(lo).Last() < r.Last() {
		hi = m.index(r.Last())
	}
	after, last := m.rangeAt(hi).Limit, m.segments[hi].value

	// The segments lo to hi give way to a patch: what is left of the first,
	// then v, then what is left of the last.
	var patch [3]segment[V]
	n := 0
	if m.segments[lo].start < r.Start {
		if m.segments[lo].value == v {
			r.Start = m.segments[lo].start // v begins earlier
		} else {
			patch[n] = m.segments[lo]
			n++
		}
	} else if lo > 0 && m.segments[lo-1].value == v {
		lo-- // the neighbour on the left takes in v
		r.Start = m.segments[lo].start
	}
	patch[n] = segment[V]{r.Start, v}
	n++
	switch {
	case r.Limit != after && last != v:
		patch[n] = segment[V]{r.Limit, last}
		n++
	case r.Limit == after && hi+1 < len(m.segments) && m.segments[hi+1].value == v:
		hi++ // v takes in the neighbour on the right
	}
	m.segments = slices.Replace(m.segments, lo, hi+1, patch[:n]...)
}

// All yields the ranges in order with their values. The map must not be
// changed meanwhile.
func (m *Map[V]) All() iter.Seq2[leasehold.Range, V] {
	return func(yield func(leasehold.Range, V) bool) {
		for i := range m.segments {
			if !yield(m.rangeAt(i), m.segments[i].value) {
				return
			}
		}
	}
}

// Within yields the parts of r in order with their values, nothing if r is
// not valid. The map must not be changed meanwhile.
func (m *Map[V]) Within(r leasehold.Range) iter.Seq2[leasehold.Range, V] {
	return func(yield func(leasehold.Range, V) bool) {
		for i := m.index(r.Start); i < len(m.segments); i++ {
			part, ok := m.rangeAt(i).Intersect(r)
			if !ok || !yield(part, m.segments[i].value) {
				return
			}
		}
	}
}

// Diff yields, in order, the parts of the key space where a and b have
// different values, with both values. Neither map may be changed meanwhile.
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

// Zip yields the key space in order, cut wherever either map has a boundary,
// with the values of both. Neither map may be changed meanwhile.
func Zip[A, B comparable](a *Map[A], b *Map[B]) iter.Seq2[leasehold.Range, Pair[A, B]] {
	return func(yield func(leasehold.Range, Pair[A, B]) bool) {
		i, j := 0, 0
		for i < len(a.segments) && j < len(b.segments) {
			ra, rb := a.rangeAt(i), b.rangeAt(j)
			part, _ := ra.Intersect(rb)
			if !yield(part, Pair[A, B]{a.segments[i].value, b.segments[j].value}) {
				return
			}
			if ra.Last() <= rb.Last() {
				i++
			}
			if rb.Last() <= ra.Last() {
				j++
			}
		}
	}
}

// A Builder assembles a map from left to right in linear time. The zero
// Builder is ready for use.
type Builder[V comparable] struct {
	segments []segment[V]
	last     leasehold.Key // the start appended last; merging may have hidden it in a segment
}

// Grow makes room for n more ranges.
func (b *Builder[V]) Grow(n int) { b.segments = slices.Grow(b.segments, n) }

// Append says that keys from start on have the value v. Starts must rise, and
// the first must be 0; Append reports whether that holds, and does nothing if
// it does not.
func (b *Builder[V]) Append(start leasehold.Key, v V) bool {
	n := len(b.segments)
	if n == 0 && start != 0 || n > 0 && start <= b.last {
		return false
	}
	b.last = start
	if n == 0 || b.segments[n-1].value != v {
		b.segments = append(b.segments, segment[V]{start, v})
	}
	return true
}

// Map returns the map built so far, which is total because the last value
// extends to the end of the key space. The builder must not be used again.
// It returns nil if nothing was appended.
func (b *Builder[V]) Map() *Map[V] {
	if len(b.segments) == 0 {
		return nil
	}
	return &Map[V]{segments: b.segments}
}
