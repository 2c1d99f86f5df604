package owner

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyindex"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// A Lease is what [Owner.Check] found: the lease that covers a key. It is a
// value, good for [Owner.Held] at any time later.
//
// It names the key because the range may shrink while the lease goes on: when a
// range is split, the part that stays keeps its generation, and keys of the
// part that goes do not. The range is the one at the time of the Check.
type Lease struct {
	leasehold.Lease
	Key leasehold.Key
}

// A holding is what checks are made against: the leases, and until when they
// are good. It is immutable.
type holding struct {
	until mono.Instant
	epoch uint64 // of the sleep detector: a sleep ends everything
	areas *areas
	drift mono.Drift // by how much the clocks of others may be slower

	coming     []leasehold.Range // what will be served in a moment
	superseded chan struct{}     // closed when there is another
}

// comes reports whether a key that is not held will be in a moment.
func (h *holding) comes(key leasehold.Key) bool {
	return slices.ContainsFunc(h.coming, func(r leasehold.Range) bool { return r.Contains(key) })
}

// areas cover the whole key space, so that a search needs no second look: a
// lease for each range that is held, and one without a generation for each gap.
type areas struct {
	index  *keyindex.Index
	leases []leasehold.Lease
	held   []leasehold.Lease // what they were made from
}

// newAreas takes leases that are sorted and do not overlap.
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

// find returns the lease that covers a key; its generation is 0 if none does.
func (a *areas) find(key leasehold.Key) *leasehold.Lease { return &a.leases[a.index.Find(key)] }
