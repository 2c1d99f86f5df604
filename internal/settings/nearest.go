package settings

import (
	"cmp"
	"slices"
	"strings"
)

// closest is the one name that is most like a mistyped one.
func closest(mistyped string, names []string) string {
	return strings.Join(Nearest(mistyped, names, 1), "")
}

// Nearest returns the n names that are most like one that was mistyped, best
// first. A name that contains it is more like it than any other.
func Nearest(mistyped string, names []string, n int) []string {
	distance := func(name string) int {
		if strings.Contains(name, mistyped) {
			return 0
		}
		return editDistance(mistyped, name)
	}
	sorted := slices.Clone(names)
	slices.SortStableFunc(sorted, func(a, b string) int { return cmp.Compare(distance(a), distance(b)) })
	return sorted[:min(n, len(sorted))]
}

// Alike reports whether a name may be what was meant by one that was mistyped: most
// of it is the same.
func Alike(mistyped, name string) bool {
	return strings.Contains(name, mistyped) || 2*editDistance(mistyped, name) <= len(mistyped)
}

// editDistance is Levenshtein's: how many bytes must be inserted, removed or
// replaced to turn a into b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1) // row[j]: from the part of a read so far to b[:j]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
