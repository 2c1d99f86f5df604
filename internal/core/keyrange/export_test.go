package keyrange

// SmallBlocks makes a map's blocks so small that tests cross their boundaries.
func SmallBlocks[V comparable](m *Map[V]) *Map[V] {
	small := &Map[V]{n: m.n, most: 3}
	for r, v := range m.All() {
		small.blocks = append(small.blocks, block[V]{segments: []segment[V]{{r.Start, v}}})
	}
	return small
}

// Blocks returns the number of segments of each block, and the limit.
func Blocks[V comparable](m *Map[V]) (sizes []int, most int) {
	for _, b := range m.blocks {
		sizes = append(sizes, len(b.segments))
	}
	return sizes, m.most
}

// Shared returns how many of its blocks a clone shares with m, and how many it has.
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
