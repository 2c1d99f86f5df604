package protocol

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
)

// SameLeases reports whether two lease sets are equal. Sets are immutable and usually share memory,
// so the common case takes constant time.
func SameLeases(a, b []leasehold.Lease) bool {
	if len(a) != len(b) {
		return false
	}
	return len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b)
}

// Missing returns the parts of have that are not in want under the same generation. Both are sorted
// and without overlaps, and so is the result.
func Missing(have, want []leasehold.Lease) []leasehold.Lease {
	if SameLeases(have, want) {
		return nil
	}
	var out []leasehold.Lease
	j := 0
	for _, h := range have {
		rest, more := h.Range, true
		for more {
			for j < len(want) && want[j].Range.Last() < rest.Start {
				j++
			}
			if j == len(want) || !want[j].Range.Overlaps(rest) {
				out = append(out, leasehold.Lease{Range: rest, Generation: h.Generation})
				break
			}
			w := want[j]
			if w.Range.Start > rest.Start {
				out = append(out, leasehold.Lease{Range: leasehold.Range{Start: rest.Start, Limit: w.Range.Start}, Generation: h.Generation})
			}
			if w.Generation != h.Generation {
				part, _ := w.Range.Intersect(rest)
				out = append(out, leasehold.Lease{Range: part, Generation: h.Generation})
			}
			more = w.Range.Last() < rest.Last()
			rest.Start = w.Range.Limit
		}
	}
	return out
}
