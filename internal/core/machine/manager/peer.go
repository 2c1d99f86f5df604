package manager

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/partition"
)

// A seat is an owner's name and who has it.
type seat struct {
	owner     leasehold.OwnerID
	incumbent *peer
	contender *peer // another session that wants the name; nil if none does
	gone      bool  // nobody has the name any more
}

// A peer is one session of an owner, as this leader sees it.
type peer struct {
	holder *table.Holder
	// seat is nil for a ghost: a session whose leases are in the table although
	// a later session has its name. It is only waited for.
	seat *seat

	load  float64          // as it last reported
	loads *partition.Loads // how that divides; nil if it has not reported any

	acks    acks      // which messages have been exchanged
	renewal renewal   // when its leases end
	claims  claims    // what its newest request says that it holds
	held    holding   // what the table says that it holds
	exit    exit      // whether it is to hold nothing in the end
	moves   peerMoves // state that moves from it and to it
}

// newPeer returns a session that has not been heard in this term.
func newPeer(h *table.Holder) *peer { return &peer{holder: h, acks: acks{resendAt: mono.Never}} }

// newInheritedPeer returns a session that a leader before us has granted leases to. It is a member, since
// it has answered that leader, and its leases end at until if it stays silent.
func newInheritedPeer(h *table.Holder, until mono.Instant) *peer {
	p := newPeer(h)
	p.renewal.until, p.acks.proven = until, true
	return p
}

// member reports whether the peer takes part in the partitioning.
func (p *peer) member() bool { return p.seat != nil && p.seat.incumbent == p && p.acks.proven }
