package keyrange

// SmallBlocks makes a map's blocks so small that a test crosses their borders.
func SmallBlocks[V comparable](m *Map[V]) *Map[V] {
	var segments []segment[V]
	for r, v := range m.All() {
		segments = append(segments, segment[V]{r.Start, v})
	}
	return newMap(segments, 3)
}

// Blocks returns how many segments each block has, and how many are allowed.
func Blocks[V comparable](m *Map[V]) (sizes []int, most int) {
	for _, b := range m.blocks {
		sizes = append(sizes, len(b))
	}
	return sizes, m.most
}
