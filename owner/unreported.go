package owner

import (
	"cmp"
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// unreported contains leases that have ended before the application was notified of their
// grant.
//
// While a callback runs, their number is unbounded. So many of them are
// merged: within each held lease, within each range that is
// coming, and within each gap between those, all become one lease, from the first key
// to the last and with the newest generation. It stands for every older
// generation on its keys. So the result is bounded by the number of held leases and coming
// ranges.
//
// A merged lease never covers a held lease: the leases that have ended on its keys are older.
// Nor does it cover a coming range, whose state the
// application may have installed already: its lease is also newer than all that
// have ended on its own keys, but may be older than one that has ended on keys next to them.
type unreported []endedLease

type endedLease struct {
	leasehold.Lease
	cause leasehold.Cause
}

// minMerged is the number of leases that are never merged.
const minMerged = 256

// bound merges the leases if there are many. held is sorted and without
// overlaps.
func (u *unreported) bound(held []leasehold.Lease, coming []leasehold.Range) {
	if len(*u) > minMerged+4*(len(held)+len(coming)) {
		u.merge(held, coming)
	}
}

// merge leaves at most one lease for each held lease, each coming range, and each gap.
func (u *unreported) merge(held []leasehold.Lease, coming []leasehold.Range) {
	places := newAreas(union(held, coming))
	merged := make([]endedLease, len(places.leases)) // generation 0: no lease has ended there
	for _, e := range *u {
		for i := places.index.Find(e.Range.Start); i < len(merged); i++ {
			part, ok := e.Range.Intersect(places.leases[i].Range)
			if !ok {
				break
			}
			merged[i].include(part, e)
		}
	}
	*u = slices.DeleteFunc(merged, func(m endedLease) bool { return m.Generation == 0 })
}

// union returns the ranges of held, and the rest of coming, sorted and without overlaps. The
// generations are 0.
func union(held []leasehold.Lease, coming []leasehold.Range) []leasehold.Lease {
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

// include extends m to a part of another lease.
func (m *endedLease) include(part leasehold.Range, other endedLease) {
	if m.Generation == 0 {
		*m = endedLease{leasehold.Lease{Range: part, Generation: other.Generation}, other.cause}
		return
	}
	m.Range.Start = min(m.Range.Start, part.Start)
	if part.Last() > m.Range.Last() {
		m.Range.Limit = part.Limit
	}
	if other.Generation > m.Generation && other.cause != leasehold.CauseMoved || m.cause == leasehold.CauseMoved {
		m.cause = other.cause // CauseMoved only if all have moved
	}
	m.Generation = max(m.Generation, other.Generation)
}
