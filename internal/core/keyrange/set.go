package keyrange

import (
	"cmp"
	"slices"

	"github.com/leasehold-dev/leasehold"
)

// A Set is a set of keys as ranges that are valid, sorted, disjoint and not adjacent, so equal sets
// have equal ranges. The zero Set is empty, and an empty result is always nil. Methods change
// neither s nor their arguments, and take linear time.
//
// [NewSet] makes a Set from arbitrary ranges.
type Set []leasehold.Range

// NewSet returns the union of ranges, which may be in any order and overlap. Ranges that are not
// valid have no keys and are ignored. Sorted ranges cost linear time.
func NewSet(ranges ...leasehold.Range) Set {
	sorted := slices.DeleteFunc(slices.Clone(ranges), func(r leasehold.Range) bool { return !r.Valid() })
	slices.SortFunc(sorted, func(a, b leasehold.Range) int { return cmp.Compare(a.Start, b.Start) })
	if len(sorted) == 0 {
		return nil
	}
	s := Set(sorted[:0]) // in place: writes never pass the range being read
	for _, r := range sorted {
		s = s.append(r)
	}
	return s
}

// append adds a range that starts no earlier than the last one of s.
func (s Set) append(r leasehold.Range) Set {
	n := len(s)
	if n == 0 || s[n-1].Limit != 0 && r.Start > s[n-1].Limit {
		return append(s, r)
	}
	if r.Last() > s[n-1].Last() {
		s[n-1].Limit = r.Limit
	}
	return s
}

// Union returns the keys in s or o.
func (s Set) Union(o Set) Set {
	if len(s)+len(o) == 0 {
		return nil
	}
	out := make(Set, 0, len(s)+len(o))
	for len(s) > 0 && len(o) > 0 {
		if s[0].Start <= o[0].Start {
			out, s = out.append(s[0]), s[1:]
		} else {
			out, o = out.append(o[0]), o[1:]
		}
	}
	for _, r := range s {
		out = out.append(r)
	}
	for _, r := range o {
		out = out.append(r)
	}
	return out
}

// Subtract returns the keys in s and not in o.
func (s Set) Subtract(o Set) Set {
	var out Set
	for _, rest := range s {
		for len(o) > 0 && o[0].Last() < rest.Start {
			o = o[1:]
		}
		// Only the last range of o that overlaps rest can extend beyond it, into the next range of
		// s. It stays in o for the next iteration.
		for len(o) > 0 && o[0].Last() < rest.Last() {
			if o[0].Start > rest.Start {
				out = append(out, leasehold.Range{Start: rest.Start, Limit: o[0].Start})
			}
			rest.Start = o[0].Limit
			o = o[1:]
		}
		switch {
		case len(o) == 0 || o[0].Start > rest.Last():
			out = append(out, rest)
		case o[0].Start > rest.Start:
			out = append(out, leasehold.Range{Start: rest.Start, Limit: o[0].Start})
		}
	}
	return out
}

// Covers reports whether r is valid and every key of r is in s. It takes
// logarithmic time.
func (s Set) Covers(r leasehold.Range) bool {
	i, found := slices.BinarySearchFunc(s, r.Start, func(have leasehold.Range, start leasehold.Key) int {
		return cmp.Compare(have.Start, start)
	})
	if !found {
		i-- // the last range that starts before r
	}
	return i >= 0 && s[i].Covers(r)
}

// Gaps returns the keys that are not in s.
func (s Set) Gaps() Set { return Set{leasehold.All}.Subtract(s) }
