package keyrange

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
)

// A Builder assembles a map from left to right in linear time. The zero
// Builder is ready for use.
type Builder[V comparable] struct {
	// Each block has memory of its own. Were they parts of one array, a single
	// one that a map still has would keep all of it.
	blocks []block[V]
	n      int           // segments in all blocks
	last   leasehold.Key // the start appended last; merging may have hidden it in a segment
}

// Grow makes room for n more ranges.
func (b *Builder[V]) Grow(n int) {
	if len(b.blocks) == 0 {
		b.blocks = []block[V]{{segments: make([]segment[V], 0, min(n, usualFill))}}
	}
	b.blocks = slices.Grow(b.blocks, n/usualFill)
}

// Append says that keys from start on have the value v. Starts must rise, and
// the first must be 0; Append reports whether that holds, and does nothing if
// it does not.
func (b *Builder[V]) Append(start leasehold.Key, v V) bool {
	if b.n == 0 {
		if start != 0 {
			return false
		}
		b.push(segment[V]{start, v})
		return true
	}
	if start <= b.last {
		return false
	}
	b.last = start
	segments := b.blocks[len(b.blocks)-1].segments
	if segments[len(segments)-1].value != v {
		b.push(segment[V]{start, v})
	}
	return true
}

// push adds a segment to the last block, or to a new one if that is full.
func (b *Builder[V]) push(s segment[V]) {
	switch count := len(b.blocks); {
	case count == 0:
		b.blocks = append(b.blocks, block[V]{}) // grows as it must: most maps are small
	case len(b.blocks[count-1].segments) == usualFill:
		b.blocks = append(b.blocks, block[V]{segments: make([]segment[V], 0, usualFill)})
	}
	tail := &b.blocks[len(b.blocks)-1]
	tail.segments = append(tail.segments, s)
	b.n++
}

// Map returns the map built so far, which is total because the last value
// extends to the end of the key space. The builder must not be used again.
// It returns nil if nothing was appended.
func (b *Builder[V]) Map() *Map[V] {
	if b.n == 0 {
		return nil
	}
	return &Map[V]{blocks: b.blocks, n: b.n, most: usualMost}
}
