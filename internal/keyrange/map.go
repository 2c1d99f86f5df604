// Package keyrange is arithmetic on ranges of keys: a total map from keys to
// values, kept as ranges, and sets of ranges.
//
// A set is a sorted slice. So is a map, cut into blocks of a few hundred
// ranges: a lease table has tens of thousands of ranges and changes a few at a
// time, and to move a whole slice for each change takes longer than to decide
// it. One level of blocks is enough at that size, and easier to be sure of than
// a tree.
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
	// blocks together are sorted by start, the first start is 0, and no two
	// neighbours have equal values. A segment ends where the next one starts.
	// No block is empty, and none has more than most segments.
	blocks [][]segment[V]
	n      int // segments in all blocks
	most   int
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

// usualMost makes a block of a lease table 8 KB: as much as can be moved in the
// time of a few cache misses.
const usualMost = 256

// NewMap returns a map that gives v to every key.
func NewMap[V comparable](v V) *Map[V] {
	return newMap([]segment[V]{{value: v}}, usualMost)
}

// newMap cuts segments into blocks that are half full.
func newMap[V comparable](segments []segment[V], most int) *Map[V] {
	m := &Map[V]{n: len(segments), most: most}
	for chunk := range slices.Chunk(segments, (most+1)/2) {
		m.blocks = append(m.blocks, chunk) // its capacity is its length
	}
	return m
}

// Len returns the number of ranges.
func (m *Map[V]) Len() int { return m.n }

// Clone returns a copy that shares nothing with m.
func (m *Map[V]) Clone() *Map[V] { return newMap(slices.Concat(m.blocks...), m.most) }

// A place is the position of a segment.
type place struct{ block, at int }

func (m *Map[V]) get(p place) *segment[V] { return &m.blocks[p.block][p.at] }

// next returns the place behind p, and whether there is one.
func (m *Map[V]) next(p place) (place, bool) {
	if p.at+1 < len(m.blocks[p.block]) {
		return place{p.block, p.at + 1}, true
	}
	return place{p.block + 1, 0}, p.block+1 < len(m.blocks)
}

// previous returns the place before p, and whether there is one.
func (m *Map[V]) previous(p place) (place, bool) {
	if p.at > 0 {
		return place{p.block, p.at - 1}, true
	}
	if p.block == 0 {
		return p, false
	}
	return place{p.block - 1, len(m.blocks[p.block-1]) - 1}, true
}

// At returns the value of k and the range around k that shares it. It takes
// logarithmic time.
func (m *Map[V]) At(k leasehold.Key) (leasehold.Range, V) {
	p := m.find(k)
	return m.rangeAt(p), m.get(p).value
}

// find returns the place of the segment that contains k.
func (m *Map[V]) find(k leasehold.Key) place {
	// By hand: sort.Search calls its function at every step and takes a third
	// longer. The first block that starts beyond k is in [lo, hi].
	lo, hi := 1, len(m.blocks)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if m.blocks[mid][0].start <= k {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	p := place{block: lo - 1}
	block := m.blocks[p.block]
	lo, hi = 1, len(block)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if block[mid].start <= k {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	p.at = lo - 1
	return p
}

func (m *Map[V]) rangeAt(p place) leasehold.Range {
	r := leasehold.Range{Start: m.get(p).start}
	if after, ok := m.next(p); ok {
		r.Limit = m.get(after).start
	}
	return r
}

// Set gives v to every key of r, splitting and merging ranges as needed. A
// range that is not valid holds no key, and changes nothing.
//
// It takes logarithmic time, and time to move a block if the number of ranges
// changes. To change most of a large map, build another.
func (m *Map[V]) Set(r leasehold.Range, v V) {
	if !r.Valid() {
		return
	}
	lo := m.find(r.Start)
	hi := lo // most changes are within one segment
	if m.rangeAt(lo).Last() < r.Last() {
		hi = m.find(r.Last())
	}
	after, last := m.rangeAt(hi).Limit, m.get(hi).value

	// The segments lo to hi give way to a patch: what is left of the first,
	// then v, then what is left of the last.
	var patch [3]segment[V]
	n := 0
	if first := m.get(lo); first.start < r.Start {
		if first.value == v {
			r.Start = first.start // v begins earlier
		} else {
			patch[n] = *first
			n++
		}
	} else if left, ok := m.previous(lo); ok && m.get(left).value == v {
		lo = left // the neighbour on the left takes in v
		r.Start = m.get(lo).start
	}
	patch[n] = segment[V]{r.Start, v}
	n++
	if r.Limit != after && last != v {
		patch[n] = segment[V]{r.Limit, last}
		n++
	} else if right, ok := m.next(hi); ok && r.Limit == after && m.get(right).value == v {
		hi = right // v takes in the neighbour on the right
	}
	m.replace(lo, hi, patch[:n])
}

// replace puts a patch in the place of the segments lo to hi.
func (m *Map[V]) replace(lo, hi place, patch []segment[V]) {
	block := m.blocks[lo.block]
	if lo.block == hi.block {
		m.n += len(patch) - (hi.at + 1 - lo.at)
		block = slices.Replace(block, lo.at, hi.at+1, patch...)
	} else {
		for _, gone := range m.blocks[lo.block : hi.block+1] {
			m.n -= len(gone)
		}
		rest := m.blocks[hi.block][hi.at+1:]
		block = slices.Concat(block[:lo.at], patch, rest)
		m.blocks = slices.Delete(m.blocks, lo.block+1, hi.block+1)
		m.n += len(block)
	}
	m.blocks[lo.block] = block
	m.balance(lo.block)
}

// balance splits a block that is too large, and joins one that is small with
// the next if there is room: so there are never many more blocks than needed.
func (m *Map[V]) balance(i int) {
	if block := m.blocks[i]; len(block) > m.most {
		parts := slices.Collect(slices.Chunk(slices.Clone(block), (m.most+1)/2))
		m.blocks = slices.Replace(m.blocks, i, i+1, parts...)
		return
	}
	if i+1 == len(m.blocks) {
		i-- // the last one has only a neighbour on the left
	}
	if i >= 0 && len(m.blocks[i])+len(m.blocks[i+1]) <= m.most/2 {
		m.blocks[i] = slices.Concat(m.blocks[i], m.blocks[i+1])
		m.blocks = slices.Delete(m.blocks, i+1, i+2)
	}
}

// All yields the ranges in order with their values. The map must not be
// changed meanwhile.
func (m *Map[V]) All() iter.Seq2[leasehold.Range, V] { return m.Within(leasehold.All) }

// Within yields the parts of r in order with their values, nothing if r is
// not valid. The map must not be changed meanwhile.
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
		var i, j place
		for more := true; more; {
			ra, rb := a.rangeAt(i), b.rangeAt(j)
			part, _ := ra.Intersect(rb)
			if !yield(part, Pair[A, B]{a.get(i).value, b.get(j).value}) {
				return
			}
			// Both end with the key space, so both run out at the same time.
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
	return newMap(b.segments, usualMost)
}
