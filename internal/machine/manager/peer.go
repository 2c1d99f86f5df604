package manager

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/mono"
	"github.com/leasehold-dev/leasehold/internal/protocol"
	"github.com/leasehold-dev/leasehold/internal/table"
	"github.com/leasehold-dev/leasehold/partition"
)

// A seat is an owner's name and who has it.
type seat struct {
	owner     leasehold.OwnerID
	incumbent *peer
	contender *peer // another session that wants the name; nil if none does
	gone      bool  // nobody has the name any more
}

// A peer is one session of an owner, as this leader knows it.
type peer struct {
	holder *table.Holder
	// seat is nil for a ghost: a session whose leases are in the table although
	// a later session has its name. It is only waited for.
	seat *seat

	load  float64          // as it last said
	loads *partition.Loads // how that divides; nil if it has not said

	// mover is where it takes in state; empty if it cannot move any.
	mover string
	// identity is as whom it has shown itself; empty if it has shown nothing.
	identity string
	// parting: it wants to leave. draining: an operator wants it empty.
	parting, draining bool
	idleSaid          bool // it was told last that nothing is left to wait for
	// out and in are the moves from it and to it.
	out, in []*move
	// backlog is the moves from it that the plan asks for and that have not begun,
	// and blocked who waits to move something to it.
	backlog []wanted
	blocked []*peer
	ready   bool         // it is among those of which a move may be able to begin
	retryAt mono.Instant // no move from it begins before
	// handed is what it has let go of with its state, while that is not recorded.
	handed []protocol.Departure
	// arriving is what others have handed over to it, as long.
	arriving []protocol.Arrival
	// reports and imports are what it last said about moves from it and to it.
	reports []protocol.MoveReport
	imports []protocol.Import
	// ended holds moves from it that are over for us, until it has shown that it
	// knows: ticket to the message that told it first, 0 if none did yet.
	ended map[protocol.Ticket]protocol.Seq
	// claims is what its newest request named, and answered: that reflects a message of ours,
	// so that it is exact. settled: it was compared with the table.
	claims   []leasehold.Lease
	answered bool
	settled  bool
	// valid: since it has heard us, its leases have been valid once: what it has is from us.
	valid bool
	// deferred: it claims suspended leases, and is answered when no other owner can hold them
	// (see restored.go). resumed: it was.
	deferred, resumed bool
	// resumedUpTo is the newest generation among the leases that it has resumed once, in any
	// term; 0 if there is none.
	resumedUpTo leasehold.Generation
	// due is its deadline before an outage moved it (see outage.go); 0 if none did, or it has
	// been heard since.
	due mono.Instant
	// suspended: its newest request claims leases that have reached their deadline.
	suspended bool
	// orders: what it was last told about moves, or about draining, is not so
	// any more.
	orders bool
	// tickets says which grants in fresh have state that was moved to it.
	tickets map[leasehold.Generation]protocol.Ticket

	// heard is when its newest request was accepted.
	heard mono.Instant
	// until is when the leases of a silent peer have certainly ended.
	until mono.Instant
	// echo is the newest request accepted, 0 if none was in this term.
	echo protocol.Seq
	// sent is our newest message to it, 0 if there was none in this term.
	sent protocol.Seq
	// said is its newest request, accepted or not, and named what of ours it had heard by then.
	said, named protocol.Seq
	// proven: it has shown that it hears us.
	proven bool
	// unacked: our newest message asked for something and was not reflected yet.
	unacked bool
	// stale: what we last told it is no longer what we want.
	stale bool
	// resendAt is when to speak again after a race.
	resendAt mono.Instant

	// leases is what the table gives it, less what it has given back.
	// Immutable: replaced as a whole.
	leases []leasehold.Lease
	// fresh holds grants that it has not confirmed: generation to the message
	// that first offered it, 0 if none did yet.
	fresh map[leasehold.Generation]protocol.Seq
	// recalled holds leases that it must give back although the plan has their
	// ranges for it, to get them again as fewer.
	recalled map[leasehold.Lease]bool
	// plain: it is to keep all its leases as they are, and has confirmed them.
	// If not, what to tell it must be worked out.
	plain bool
}

// member reports whether the peer takes part in the partitioning.
func (p *peer) member() bool { return p.seat != nil && p.seat.incumbent == p && p.proven }

// retires reports whether the peer is to hold nothing in the end.
func (p *peer) retires() bool { return p.parting || p.draining }

// drop takes parts away from the peer's leases. They are sorted.
func (p *peer) drop(parts []leasehold.Lease) { p.setLeases(protocol.Missing(p.leases, parts)) }

// add gives the peer a lease that was just granted.
func (p *peer) add(l leasehold.Lease) {
	next := make([]leasehold.Lease, 0, len(p.leases)+1)
	i := 0
	for ; i < len(p.leases) && p.leases[i].Range.Start < l.Range.Start; i++ {
		next = append(next, p.leases[i])
	}
	next = append(next, l)
	p.setLeases(append(next, p.leases[i:]...))
	if p.fresh == nil {
		p.fresh = make(map[leasehold.Generation]protocol.Seq)
	}
	p.fresh[l.Generation] = 0
}

// expect remembers under which ticket the state of a lease has come to the peer.
func (p *peer) expect(g leasehold.Generation, t protocol.Ticket) {
	if p.tickets == nil {
		p.tickets = make(map[leasehold.Generation]protocol.Ticket)
	}
	p.tickets[g] = t
	p.plain = false
}

func (p *peer) setLeases(leases []leasehold.Lease) {
	p.leases = leases
	p.plain = false
	if len(p.recalled) == 0 {
		return
	}
	left := make(map[leasehold.Lease]bool, len(p.recalled))
	for _, l := range leases {
		if p.recalled[l] {
			left[l] = true
		}
	}
	p.recalled = left
}
