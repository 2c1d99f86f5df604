package partition

import (
	"cmp"
	"slices"
)

// The top bytes of a key are what the radix passes of sortPoints look at. At
// 64,000 points three leave about one point in 250 for the comparison sort;
// two would leave most of them, and a fourth has next to nothing left to do.
const (
	radixPasses = 3
	radixShift  = 64 - 8*radixPasses
)

// sortPoints sorts points by key and then by member. It uses points as
// scratch space and returns a sorted slice that may be another.
//
// Hashes spread evenly, so a radix sort on their top bytes all but finishes
// the work, several times faster than comparing. What is equal in those bytes
// is then sorted by comparison, which bounds the time whatever names, and so
// hashes, peers choose.
func sortPoints(points []point) []point {
	from, to := points, make([]point, len(points))
	for shift := radixShift; shift < 64; shift += 8 {
		scatter(to, from, shift)
		from, to = to, from
	}
	for i := 0; i < len(from); {
		j := i + 1
		for j < len(from) && from[j].key>>radixShift == from[i].key>>radixShift {
			j++
		}
		if j-i > 1 {
			slices.SortFunc(from[i:j], comparePoints)
		}
		i = j
	}
	return from
}

// scatter copies from into to, sorted by the byte of the key at shift, with
// points of equal bytes in the order they had.
func scatter(to, from []point, shift int) {
	var next [256]int // where the next point with this byte goes
	for i := range from {
		next[byte(from[i].key>>shift)]++
	}
	sum := 0
	for b, n := range next {
		next[b] = sum
		sum += n
	}
	for _, p := range from {
		b := byte(p.key >> shift)
		to[next[b]] = p
		next[b]++
	}
}

func comparePoints(a, b point) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.member, b.member))
}
