package keyrange

// SmallBlocks makes a map's blocks so small that a test crosses their borders.
func SmallBlocks[V comparable](m *Map[V]) *Map[V] {
	small := &Map[V]{n: m.n, most: 3}
	for r, v := range m.All() {
		small.blocks = append(small.blocks, block[V]{segments: []segment[V]{{r.Start, v}}})
	}
	return small
}

// Blocks returns how many segments each block has, and how many are allowed.
func Blocks[V comparable](m *Map[V]) (sizes []int, most int) {
	for _, b := range m.blocks {
		sizes = append(sizes, len(b.segments))
	}
	return sizes, m.most
}

// Shared returns how many of a map's blocks its clone shares, and how many the
// clone has.
func Shared[V comparable](m, clone *Map[V]) (shared, all int) {
	have := make(map[*segment[V]]bool)
	for _, b := range m.blocks {
		have[&b.segments[0]] = true
	}
	for _, b := range clone.blocks {
		if have[&b.segments[0]] {
			shared++
		}
	}
	return shared, len(clone.blocks)
}
