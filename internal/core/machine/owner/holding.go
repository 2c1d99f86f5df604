package owner

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// A holding is the leases, all of which end at view.Until.
type holding struct {
	// leases is what we have as the leader sees it. The view has it less what may
	// not be served for a moment, because its state is about to go or to come.
	leases []leasehold.Lease
	view   *View
	// suspended: the deadline of the leases has passed. Checks fail, but the leases
	// and the application's state are kept until a leader answers (see suspend.go).
	suspended bool
	// resumedUpTo is the newest generation among the leases that were resumed.
	resumedUpTo leasehold.Generation
	newest      leasehold.Generation // newest generation ever installed
}

// unchanged reports whether the offers are exactly what we hold.
func (h *holding) unchanged(offers []protocol.Offer) bool {
	if len(offers) != len(h.leases) {
		return false
	}
	for i := range offers {
		if offers[i].Lease != h.leases[i] || offers[i].Fresh {
			return false
		}
	}
	return true
}

// resumed returns the newest generation among the held leases that were resumed once; 0 if there
// is none. If the store turns out to have lost history, such a lease may have been another
// owner's while it was suspended. The leader that resumed it knows that, and a successor learns
// it from us.
func (h *holding) resumed() leasehold.Generation {
	if h.resumedUpTo != 0 && !slices.ContainsFunc(h.leases, func(l leasehold.Lease) bool { return l.Generation <= h.resumedUpTo }) {
		h.resumedUpTo = 0
	}
	return h.resumedUpTo
}

// remains returns what we have of an arrival's lease. It may have been split since
// we got it.
func (h *holding) remains(a *arrival) []leasehold.Lease {
	return slices.DeleteFunc(part(h.leases, a.lease.Range), func(l leasehold.Lease) bool { return l.Generation != a.lease.Generation })
}
