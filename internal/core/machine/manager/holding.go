package manager

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// A holding is the leases that the table gives a session, less those that the session has released. Every lease in
// recalled is one of leases, and every generation in tickets is in fresh.
type holding struct {
	// leases is sorted, and immutable: it is replaced as a whole.
	leases []leasehold.Lease
	// fresh is the unconfirmed grants: generation to the message that first offered it, 0 if none has.
	fresh map[leasehold.Generation]protocol.Seq
	// tickets are the grants in fresh whose state was moved to the session.
	tickets map[leasehold.Generation]protocol.Ticket
	// recalled are leases that are recalled although the plan assigns their ranges to the session, to be granted
	// again as fewer.
	recalled map[leasehold.Lease]bool
	// plain: the session keeps all its leases unchanged, and has confirmed them. If not, the offers to it must be
	// computed.
	plain bool
}

// drop removes parts of the leases. They are sorted.
func (h *holding) drop(parts []leasehold.Lease) { h.setLeases(protocol.Missing(h.leases, parts)) }

// add adds a lease that was just granted.
func (h *holding) add(l leasehold.Lease) {
	next := make([]leasehold.Lease, 0, len(h.leases)+1)
	i := 0
	for ; i < len(h.leases) && h.leases[i].Range.Start < l.Range.Start; i++ {
		next = append(next, h.leases[i])
	}
	next = append(next, l)
	h.setLeases(append(next, h.leases[i:]...))
	if h.fresh == nil {
		h.fresh = make(map[leasehold.Generation]protocol.Seq)
	}
	h.fresh[l.Generation] = 0
}

// expect records the ticket under which the state of a lease was moved to the peer.
func (h *holding) expect(g leasehold.Generation, t protocol.Ticket) {
	if h.tickets == nil {
		h.tickets = make(map[leasehold.Generation]protocol.Ticket)
	}
	h.tickets[g] = t
	h.plain = false
}

func (h *holding) setLeases(leases []leasehold.Lease) {
	h.leases = leases
	h.plain = false
	if len(h.recalled) == 0 {
		return
	}
	left := make(map[leasehold.Lease]bool, len(h.recalled))
	for _, l := range leases {
		if h.recalled[l] {
			left[l] = true
		}
	}
	h.recalled = left
}

// covers reports whether the leases cover a range.
func (h *holding) covers(r leasehold.Range) bool {
	i, _ := slices.BinarySearchFunc(h.leases, r.Start, func(l leasehold.Lease, k leasehold.Key) int {
		if l.Range.Last() < k {
			return -1
		}
		return 1
	})
	for next := r.Start; i < len(h.leases); i++ {
		l := h.leases[i].Range
		if l.Start > next {
			return false
		}
		if l.Last() >= r.Last() {
			return true
		}
		next = l.Limit
	}
	return false
}
