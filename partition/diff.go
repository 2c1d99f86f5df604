package partition

import (
	"github.com/leasehold-dev/leasehold"
)

// A Reassigned is a range that two assignments give to different owners.
type Reassigned struct {
	leasehold.Range
	From, To leasehold.OwnerID // "" is nobody
}

// Diff returns where two assignments differ, in order of the keys. Neighbours
// that go the same way are one.
func Diff(from, to Assignment) []Reassigned {
	var out []Reassigned
	for start, i, j := leasehold.Key(0), 0, 0; ; {
		i, j = from.at(start, i), to.at(start, j)
		r := leasehold.Range{Start: start, Limit: firstLimit(from.limit(i), to.limit(j))}
		if a, b := from.owner(i), to.owner(j); a != b {
			if n := len(out); n > 0 && out[n-1].Limit == start && out[n-1].From == a && out[n-1].To == b {
				out[n-1].Limit = r.Limit
			} else {
				out = append(out, Reassigned{r, a, b})
			}
		}
		if start = r.Limit; start == 0 {
			return out
		}
	}
}

// Moved returns the share of all keys, 0 to 1, that have an owner in from and
// another, or none, in to.
func Moved(from, to Assignment) float64 {
	var keys float64
	for _, r := range Diff(from, to) {
		if r.From != "" {
			keys += float64(r.Size())
		}
	}
	return keys / spaceSize
}

// With returns the assignment that gives r to owner and everything else to whom
// a gives it.
func (a Assignment) With(r leasehold.Range, owner leasehold.OwnerID) Assignment {
	out := make(Assignment, 0, len(a)+2)
	for i := range max(1, len(a)) {
		part := leasehold.Range{Start: 0, Limit: a.limit(i)}
		if len(a) > 0 {
			part.Start = a[i].Start
		}
		in, overlaps := part.Intersect(r)
		if !overlaps || in.Start > part.Start {
			out = out.Append(part.Start, a.owner(i))
		}
		if overlaps {
			out = out.Append(in.Start, owner)
			if in.Limit != part.Limit {
				out = out.Append(in.Limit, a.owner(i))
			}
		}
	}
	return out
}

// at returns the slot of k, which is i or a later one.
func (a Assignment) at(k leasehold.Key, i int) int {
	for i+1 < len(a) && a[i+1].Start <= k {
		i++
	}
	return i
}

func (a Assignment) owner(i int) leasehold.OwnerID {
	if i >= len(a) {
		return ""
	}
	return a[i].Owner
}

func (a Assignment) limit(i int) leasehold.Key {
	if i+1 >= len(a) {
		return 0
	}
	return a[i+1].Start
}

// firstLimit is the lower one of two limits; 0 is the end of the key space.
func firstLimit(a, b leasehold.Key) leasehold.Key {
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	}
	return min(a, b)
}
