package keyindex

// Few is how many starts a search may walk past.
const Few = few

// LongestWalk returns the most starts that are in one slot of the root and have
// to be walked past.
func LongestWalk(x *Index) int {
	longest, next := 0, len(x.starts)-1 // the last start before the slot behind
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
