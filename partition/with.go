package partition

import "github.com/leasehold-dev/leasehold"

// With returns the assignment that gives r to owner and everything else to whom
// a gives it.
func (a Assignment) With(r leasehold.Range, owner leasehold.OwnerID) Assignment {
	if len(a) == 0 {
		a = Assignment{{}}
	}
	out := make(Assignment, 0, len(a)+2)
	for part, before := range a.All() {
		in, overlaps := part.Intersect(r)
		if !overlaps {
			out = out.Append(part.Start, before)
			continue
		}
		if in.Start > part.Start {
			out = out.Append(part.Start, before)
		}
		out = out.Append(in.Start, owner)
		if in.Limit != part.Limit {
			out = out.Append(in.Limit, before)
		}
	}
	return out
}
