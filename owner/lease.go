package owner

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyindex"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// A Lease is the result of [Owner.Check]: the lease that covers a key. It is a
// value that [Owner.Held] accepts at any later time.
//
// It contains the key because the range may shrink: when a
// range is split, only the part that stays keeps its generation.
// The range is the range at the time of the Check.
type Lease struct {
	leasehold.Lease
	Key leasehold.Key
}

// A holding is the data of checks: the leases and their deadline. It is immutable.
type holding struct {
	until mono.Instant
	epoch uint64 // of the sleep detector: another epoch invalidates all leases
	areas *areas

	view       *machine.View
	superseded chan struct{} // closed when the next holding is published
}

// expects reports whether a key is in a coming range.
func (h *holding) expects(key leasehold.Key) bool {
	return slices.ContainsFunc(h.view.Coming, func(r leasehold.Range) bool { return r.Contains(key) })
}

// areas are an index of the leases. They cover the whole key space, so that a search needs one
// lookup: a lease for each held range, and one with generation 0 for each gap.
type areas struct {
	index  *keyindex.Index
	leases []leasehold.Lease
	held   []leasehold.Lease // the indexed leases
}

// newAreas indexes leases, which must be sorted and without overlaps.
func newAreas(held []leasehold.Lease) *areas {
	a := &areas{held: held, leases: make([]leasehold.Lease, 0, 2*len(held)+1)}
	next, full := leasehold.Key(0), false // where the next area starts
	for _, l := range held {
		if l.Range.Start > next {
			a.leases = append(a.leases, leasehold.Lease{Range: leasehold.Range{Start: next, Limit: l.Range.Start}})
		}
		a.leases = append(a.leases, l)
		next, full = l.Range.Limit, l.Range.Limit == 0
	}
	if !full {
		a.leases = append(a.leases, leasehold.Lease{Range: leasehold.Range{Start: next}})
	}
	starts := make([]leasehold.Key, len(a.leases))
	for i := range a.leases {
		starts[i] = a.leases[i].Range.Start
	}
	a.index = keyindex.New(starts)
	return a
}

// find returns the lease that covers a key; its generation is 0 in a gap.
func (a *areas) find(key leasehold.Key) *leasehold.Lease { return &a.leases[a.index.Find(key)] }
