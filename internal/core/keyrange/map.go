// Package keyrange has a total map from keys to values, stored as ranges, and sets of ranges.
//
// A set is a sorted slice. A map is a sorted slice that is divided into blocks of a few hundred
// ranges: a lease table has tens of thousands of ranges and changes a few at a time, and moving a
// whole slice for each change would dominate the cost. One level of blocks is enough at that size
// and simpler than a tree. It also makes copies cheap: a map and its clones share the blocks that
// none of them has changed.
package keyrange

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
)

// A Map gives every key of the key space a value. It is canonical: adjacent ranges have different
// values, so maps with equal values have equal ranges, and the map is as small as possible.
//
// Use [NewMap] or [Builder]; the zero Map is not valid.
//
// A Map is not safe for concurrent use. A map that is not changed any more may be read and cloned
// concurrently. Clones are independent: one may be changed while others are read.
type Map[V comparable] struct {
	// blocks are sorted by start, the first start is 0, and adjacent segments have different
	// values. A segment ends where the next one starts. No block is empty, and none has more than
	// most segments.
	blocks []block[V]
	n      int // segments in all blocks
	most   int
}

// A block is a run of segments (copy on write). A block that is own was created by this map and is
// not shared, so the map may change it in place. Any other block may be shared and is replaced by a
// changed copy, which is own.
type block[V comparable] struct {
	segments []segment[V]
	own      bool
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

// usualMost makes a block of a lease table 8 KB, which can be moved in the time of a few cache
// misses. Builder fills blocks to one half, to leave room for inserts.
const (
	usualMost = 256
	usualFill = usualMost / 2
)

// NewMap returns a map in which every key has the value v.
func NewMap[V comparable](v V) *Map[V] {
	return &Map[V]{blocks: []block[V]{{segments: []segment[V]{{value: v}}}}, n: 1, most: usualMost}
}

// Len returns the number of ranges.
func (m *Map[V]) Len() int { return m.n }

// Clone returns a copy that can be changed independently. It only reads m.
//
// The cost is linear in the number of blocks, plus the ranges in blocks that m has changed since it
// was built or cloned: m may change those again in place, so they are copied. A caller that clones
// after every few changes should therefore keep the original unchanged and continue with the clone.
func (m *Map[V]) Clone() *Map[V] {
	c := &Map[V]{blocks: slices.Clone(m.blocks), n: m.n, most: m.most}
	for i, b := range c.blocks {
		if b.own {
			c.blocks[i] = block[V]{segments: slices.Clone(b.segments)}
		}
	}
	return c
}

// A place is the position of a segment.
type place struct{ block, at int }

func (m *Map[V]) get(p place) *segment[V] { return &m.blocks[p.block].segments[p.at] }

// next returns the place after p, and whether there is one.
func (m *Map[V]) next(p place) (place, bool) {
	if p.at+1 < len(m.blocks[p.block].segments) {
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
	return place{p.block - 1, len(m.blocks[p.block-1].segments) - 1}, true
}

// At returns the value of k and the range around k that has it. It takes logarithmic time.
func (m *Map[V]) At(k leasehold.Key) (leasehold.Range, V) {
	p := m.find(k)
	return m.rangeAt(p), m.get(p).value
}

// find returns the place of the segment that contains k.
func (m *Map[V]) find(k leasehold.Key) place {
	// Inlined: sort.Search calls a function at every step and takes a third longer. Invariant: the
	// first block that starts after k is in [lo, hi].
	lo, hi := 1, len(m.blocks)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if m.blocks[mid].segments[0].start <= k {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	p := place{block: lo - 1}
	segments := m.blocks[p.block].segments
	lo, hi = 1, len(segments)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if segments[mid].start <= k {
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

// Set gives v to every key of r, splitting and merging ranges as needed. A range that is not valid
// has no keys, and changes nothing.
//
// It takes logarithmic time, plus a copy of a block if the number of ranges changes or the block is
// shared with a clone. To change most of a large map, build a new one.
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

	// A patch replaces the segments lo to hi: the rest of the first, then v, then the rest of the
	// last.
	var patch [3]segment[V]
	n := 0
	if first := m.get(lo); first.start < r.Start {
		if first.value == v {
			r.Start = first.start // merge with the first segment
		} else {
			patch[n] = *first
			n++
		}
	} else if left, ok := m.previous(lo); ok && m.get(left).value == v {
		lo = left // merge with the left neighbour
		r.Start = m.get(lo).start
	}
	patch[n] = segment[V]{r.Start, v}
	n++
	if r.Limit != after && last != v {
		patch[n] = segment[V]{r.Limit, last}
		n++
	} else if right, ok := m.next(hi); ok && r.Limit == after && m.get(right).value == v {
		hi = right // merge with the right neighbour
	}
	m.replace(lo, hi, patch[:n])
}

// replace replaces the segments lo to hi with a patch.
func (m *Map[V]) replace(lo, hi place, patch []segment[V]) {
	first, last := m.blocks[lo.block], m.blocks[hi.block]
	for _, gone := range m.blocks[lo.block : hi.block+1] {
		m.n -= len(gone.segments)
	}
	if lo.block == hi.block && first.own {
		first.segments = slices.Replace(first.segments, lo.at, hi.at+1, patch...)
	} else {
		first.segments = slices.Concat(first.segments[:lo.at], patch, last.segments[hi.at+1:])
		first.own = true
		m.blocks = slices.Delete(m.blocks, lo.block+1, hi.block+1)
	}
	m.n += len(first.segments)
	m.blocks[lo.block] = first
	m.balance(lo.block)
}

// balance splits a block that is too large, and merges a small one with the next if there is room.
// This bounds the number of blocks. Block i is own.
func (m *Map[V]) balance(i int) {
	if segments := m.blocks[i].segments; len(segments) > m.most {
		var parts []block[V]
		for chunk := range slices.Chunk(segments, (m.most+1)/2) {
			parts = append(parts, block[V]{slices.Clone(chunk), true})
		}
		m.blocks = slices.Replace(m.blocks, i, i+1, parts...)
		return
	}
	if i+1 == len(m.blocks) {
		i-- // the last block only has a left neighbour
	}
	if i >= 0 && len(m.blocks[i].segments)+len(m.blocks[i+1].segments) <= m.most/2 {
		m.blocks[i] = block[V]{slices.Concat(m.blocks[i].segments, m.blocks[i+1].segments), true}
		m.blocks = slices.Delete(m.blocks, i+1, i+2)
	}
}
