package owner

import (
	"cmp"
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// passing is leases that have ended before the application was told that they
// had begun.
//
// While a callback does not return they may be without number, so they are
// merged when they are many: within each lease that is held, within each range that
// is coming, and within each gap between those, all become one, from the first key
// to the last and with the newest generation. That one stands for every older
// generation on its keys. So what is left is bounded by what is held and coming.
//
// It never covers what is held: the leases that have ended on a key are older than
// the one that is held there. Nor does it cover what is coming, whose state the
// application may have put in its place already: its lease, too, is newer than what
// has ended on its own keys, and may be older than what has ended next to them.
type passing []passed

type passed struct {
	leasehold.Lease
	cause leasehold.Cause
}

// manyPassed is how many are kept as they were, at least.
const manyPassed = 256

// bound merges if there are many. Held is what is held now, sorted and free of
// overlaps, and coming what will be.
func (p *passing) bound(held []leasehold.Lease, coming []leasehold.Range) {
	if len(*p) > manyPassed+4*(len(held)+len(coming)) {
		p.merge(held, coming)
	}
}

// merge leaves at most one for each lease that is held and each range that is
// coming, and one for each gap.
func (p *passing) merge(held []leasehold.Lease, coming []leasehold.Range) {
	places := newAreas(apart(held, coming))
	merged := make([]passed, len(places.leases)) // without a generation: none has ended there
	for _, one := range *p {
		for i := places.index.Find(one.Range.Start); i < len(merged); i++ {
			part, ok := one.Range.Intersect(places.leases[i].Range)
			if !ok {
				break
			}
			merged[i].include(part, one)
		}
	}
	*p = slices.DeleteFunc(merged, func(m passed) bool { return m.Generation == 0 })
}

// apart returns the ranges of what is held, and what is coming besides that, sorted
// and free of overlaps. They have no generations.
func apart(held []leasehold.Lease, coming []leasehold.Range) []leasehold.Lease {
	out := make([]leasehold.Lease, 0, len(held)+len(coming))
	for _, l := range held {
		out = append(out, leasehold.Lease{Range: l.Range})
	}
	for _, r := range coming {
		out = append(out, protocol.Missing([]leasehold.Lease{{Range: r}}, out)...)
		slices.SortFunc(out, func(a, b leasehold.Lease) int { return cmp.Compare(a.Range.Start, b.Range.Start) })
	}
	return out
}

// include makes m cover a part of another lease as well.
func (m *passed) include(part leasehold.Range, other passed) {
	if m.Generation == 0 {
		*m = passed{leasehold.Lease{Range: part, Generation: other.Generation}, other.cause}
		return
	}
	m.Range.Start = min(m.Range.Start, part.Start)
	if part.Last() > m.Range.Last() {
		m.Range.Limit = part.Limit
	}
	if other.Generation > m.Generation {
		m.Generation, m.cause = other.Generation, other.cause
	}
}
