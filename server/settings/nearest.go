package settings

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// shortPart is the minimum length of a substring that counts as a match.
const shortPart = 3

// Nearest returns at most n names similar to a mistyped one, the best first: those that contain
// it, and those whose edit distance is at most a third of its length.
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

// closest returns a hint to the most similar name, as the end of a sentence; "" without one.
func closest(mistyped string, names []string, written func(string) string) string {
	near := Nearest(mistyped, names, 1)
	if len(near) == 0 {
		return ""
	}
	return "; the closest is " + written(near[0])
}

// editDistance is the number of bytes to insert, remove, replace or swap with the next one to
// turn a into b (the restricted Damerau-Levenshtein distance).
func editDistance(a, b string) int {
	// Row i holds the distances from a[:i] to every b[:j].
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

// fromKubernetes reports whether Kubernetes sets a variable. It sets several in every pod for each
// service: a service named leasehold or leasehold-manager produces LEASEHOLD_PORT and similar
// names, which are not mistyped settings.
func fromKubernetes(variable, value string) bool {
	service := regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)
	port := regexp.MustCompile(`_PORT=(tcp|udp|sctp)://`)
	return service.MatchString(variable) || port.MatchString(variable+"="+value)
}
