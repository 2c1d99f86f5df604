package keyrange

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
)

// A Builder assembles a map in increasing key order, in linear time. The zero Builder is ready for
// use.
type Builder[V comparable] struct {
	// Each block has its own array. With one shared array, a map that still uses a single block
	// would keep all of it in memory.
	blocks []block[V]
	n      int           // segments in all blocks
	last   leasehold.Key // the start appended last, even if it was merged into a segment
}

// Grow reserves space for n more ranges.
func (b *Builder[V]) Grow(n int) {
	if len(b.blocks) == 0 {
		b.blocks = []block[V]{{segments: make([]segment[V], 0, min(n, usualFill))}}
	}
	b.blocks = slices.Grow(b.blocks, n/usualFill)
}

// Append gives the value v to all keys from start on. Starts must be strictly increasing, and the
// first must be 0. Otherwise Append returns false and has no effect.
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
		b.blocks = append(b.blocks, block[V]{}) // grows on demand: most maps are small
	case len(b.blocks[count-1].segments) == usualFill:
		b.blocks = append(b.blocks, block[V]{segments: make([]segment[V], 0, usualFill)})
	}
	tail := &b.blocks[len(b.blocks)-1]
	tail.segments = append(tail.segments, s)
	b.n++
}

// Map returns the map built so far, in which the last value extends to the end of the key space, or
// nil if nothing was appended. The builder must not be used again.
func (b *Builder[V]) Map() *Map[V] {
	if b.n == 0 {
		return nil
	}
	return &Map[V]{blocks: b.blocks, n: b.n, most: usualMost}
}
