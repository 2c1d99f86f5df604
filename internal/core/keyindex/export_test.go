package keyindex

// Few is the maximum number of starts in a linear search.
const Few = few

// LongestWalk returns the length of the longest linear search in a slot of the root.
func LongestWalk(x *Index) int {
	longest, next := 0, len(x.starts)-1 // the last start before the following slot
	for s := len(x.root.slots) - 1; s >= 0; s-- {
		slot := x.root.slots[s]
		if slot >= crowded {
			next = int(x.crowds[slot-crowded].slots[0])
			continue
		}
		longest = max(longest, next-int(slot))
		next = int(slot)
	}
	return longest
}
