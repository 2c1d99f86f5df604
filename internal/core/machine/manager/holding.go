package manager

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// A holding is what the table gives a session, less what the session has given back. Every lease in
// recalled is one of leases, and every generation in tickets is in fresh.
type holding struct {
	// leases is sorted. Immutable: replaced as a whole.
	leases []leasehold.Lease
	// fresh holds grants that it has not confirmed: generation to the message
	// that first offered it, 0 if none did yet.
	fresh map[leasehold.Generation]protocol.Seq
	// tickets says which grants in fresh have state that was moved to it.
	tickets map[leasehold.Generation]protocol.Ticket
	// recalled holds leases that it must give back although the plan has their
	// ranges for it, to get them again as fewer.
	recalled map[leasehold.Lease]bool
	// plain: it is to keep all its leases as they are, and has confirmed them.
	// If not, what to send it must be worked out.
	plain bool
}

// drop takes parts away from the peer's leases. They are sorted.
func (h *holding) drop(parts []leasehold.Lease) { h.setLeases(protocol.Missing(h.leases, parts)) }

// add gives the peer a lease that was just granted.
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

// expect remembers under which ticket the state of a lease has come to the peer.
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

// holds reports whether a peer has all of a range.
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
