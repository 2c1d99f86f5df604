package manager

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/partition"
)

// A seat is an owner name and the session that has it.
type seat struct {
	owner     leasehold.OwnerID
	incumbent *peer
	contender *peer // a session that waits for the name; nil if there is none
	gone      bool  // the seat was removed
}

// A peer is the leader's state of one session of an owner.
type peer struct {
	holder *table.Holder
	// seat is nil for a ghost: a session whose leases are in the table although a later session has its owner
	// name. It gets no leases, and its own expire.
	seat *seat

	load  float64          // as it last reported
	loads *partition.Loads // the load by range; nil if not reported

	acks    acks      // sequence numbers of messages
	renewal renewal   // its deadline
	claims  claims    // the leases that its newest request claims
	held    holding   // the leases that the table gives it
	exit    exit      // whether it retires
	moves   peerMoves // moves from it and to it
}

// newPeer returns a session that has sent no request in this term.
func newPeer(h *table.Holder) *peer { return &peer{holder: h, acks: acks{resendAt: mono.Never}} }

// newInheritedPeer returns a session with leases of an earlier leader. It is a member, since it has acknowledged a
// message of that leader, and its leases expire at until.
func newInheritedPeer(h *table.Holder, until mono.Instant) *peer {
	p := newPeer(h)
	p.renewal.until, p.acks.proven = until, true
	return p
}

// verifyBy adds the death hash that the session has announced, unless it has one.
func (p *peer) verifyBy(h *table.Holder) {
	if p.holder.DeathHash.IsZero() && !h.DeathHash.IsZero() {
		p.holder = h
	}
}

// member reports whether the peer takes part in the partitioning.
func (p *peer) member() bool { return p.seat != nil && p.seat.incumbent == p && p.acks.proven }
