package settings

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// shortPart is how long a part of a name must be to stand for all of it.
const shortPart = 3

// Nearest returns the names that may have been meant by one that was mistyped, best
// first, and n at most: those that contain it, and those that are no farther from it
// than a third of its length. There may be none: a name that is far off helps nobody.
func Nearest(mistyped string, names []string, n int) []string {
	distance := make(map[string]int)
	for _, name := range names {
		d := editDistance(mistyped, name)
		if len(mistyped) >= shortPart && strings.Contains(name, mistyped) {
			d = 0
		}
		if 3*d <= len(mistyped) {
			distance[name] = d
		}
	}
	near := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, is := distance[name]
		return !is
	})
	slices.SortStableFunc(near, func(a, b string) int { return cmp.Compare(distance[a], distance[b]) })
	return near[:min(n, len(near))]
}

// closest is a hint to the name that was meant, as the end of a sentence; empty if there
// is none.
func closest(mistyped string, names []string, written func(string) string) string {
	near := Nearest(mistyped, names, 1)
	if len(near) == 0 {
		return ""
	}
	return "; the closest is " + written(near[0])
}

// editDistance is how many bytes must be inserted, removed, replaced or swapped with
// the next one to turn a into b. (It is the distance of Damerau and Levenshtein in which
// nothing is changed twice.)
func editDistance(a, b string) int {
	// Row i is from a[:i] to every b[:j].
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, before
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := last[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			row[j] = min(replace, row[j-1]+1, last[j]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}

// fromKubernetes reports whether a variable is one that Kubernetes sets in
// every pod for each service, by the service's name. A service that is called
// leasehold, or leasehold-manager, gives us LEASEHOLD_PORT and its like, which
// nobody has mistyped.
func fromKubernetes(variable, value string) bool {
	service := regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)
	port := regexp.MustCompile(`_PORT=(tcp|udp|sctp)://`)
	return service.MatchString(variable) || port.MatchString(variable+"="+value)
}
