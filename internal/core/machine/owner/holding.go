package owner

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// A holding is the set of leases. All of them end at view.Until.
type holding struct {
	// leases are the leases of the owner in the leader's table. The view omits those that are not
	// served at the moment, because their state is being moved or installed.
	leases []leasehold.Lease
	view   *View
	// suspended: the deadline of the leases has passed. Checks fail, but the leases
	// and the application's state are kept until a leader replies (see suspend.go).
	suspended bool
	// resumedUpTo is the newest generation among the leases that were resumed.
	resumedUpTo leasehold.Generation
	newest      leasehold.Generation // newest generation ever installed
}

// unchanged reports whether the offers are exactly the held leases.
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
// is none. If the store has lost history, another owner may have held such a lease while it was
// suspended. The leader that resumed it knows that, and its successor learns it from the owner's
// requests.
func (h *holding) resumed() leasehold.Generation {
	if h.resumedUpTo != 0 && !slices.ContainsFunc(h.leases, func(l leasehold.Lease) bool { return l.Generation <= h.resumedUpTo }) {
		h.resumedUpTo = 0
	}
	return h.resumedUpTo
}

// remains returns the held parts of an arrival's lease. It may have been split since the grant.
func (h *holding) remains(a *arrival) []leasehold.Lease {
	return slices.DeleteFunc(part(h.leases, a.lease.Range), func(l leasehold.Lease) bool { return l.Generation != a.lease.Generation })
}
