package manager

import (
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// membership is the sessions that we know, and who has which owner's name. Every session is the incumbent
// or the contender of one seat, or a ghost.
type membership struct {
	sessions map[leasehold.Session]*peer
	seats    []*seat // sorted by owner; each has an incumbent
	// duplicates are sessions that two processes use.
	duplicates map[leasehold.Session]*duplicate
	connected  int     // sessions that have sent something to us, not only to our predecessors
	parting    []*peer // those that want to leave
	// inherited is how many sessions we found in the table, or learned of from those.
	inherited int
	// named is how many of them the table named.
	named int
	// inheritUntil is until when leases that we found may be held by owners that
	// we have not heard.
	inheritUntil mono.Instant
	// fullUntil: until then, no session is added (see makeRoom).
	fullUntil mono.Instant
}

// seat returns the seat of an owner's name, making one if there is none.
func (mb *membership) seat(owner leasehold.OwnerID) *seat {
	i, found := mb.findSeat(owner)
	if !found {
		mb.seats = slices.Insert(mb.seats, i, &seat{owner: owner})
	}
	return mb.seats[i]
}

func (mb *membership) findSeat(owner leasehold.OwnerID) (int, bool) {
	return slices.BinarySearchFunc(mb.seats, owner, func(s *seat, o leasehold.OwnerID) int {
		return strings.Compare(string(s.owner), string(o))
	})
}

// ghosts returns the sessions without a seat that still have leases, in a
// fixed order. There are hardly ever any.
func (mb *membership) ghosts() []*peer {
	seated := 0
	for _, s := range mb.seats {
		if s.incumbent != nil {
			seated++
		}
		if s.contender != nil {
			seated++
		}
	}
	if seated == len(mb.sessions) {
		return nil
	}
	var out []*peer
	for _, p := range mb.sessions {
		if p.seat == nil {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *peer) int { return slices.Compare(a.holder.Session[:], b.holder.Session[:]) })
	return out
}

// peers returns all sessions in a fixed order.
func (mb *membership) peers() []*peer {
	var all []*peer
	for _, s := range mb.seats {
		for _, p := range []*peer{s.incumbent, s.contender} {
			if p != nil {
				all = append(all, p)
			}
		}
	}
	return append(all, mb.ghosts()...)
}

// foreignSession reports whether a session is known to be that of another owner. Whoever looks
// things up learns the sessions of all, and could speak for any of them otherwise.
func (mb *membership) foreignSession(h *table.Holder) bool {
	p := mb.sessions[h.Session]
	return p != nil && p.holder.Owner != h.Owner
}

// contenderFor returns who waits already for the name of a session that we do
// not know; nil if nobody does. One at a time waits, for as long as it speaks.
func (mb *membership) contenderFor(h *table.Holder) *peer {
	i, known := mb.findSeat(h.Owner)
	if !known || mb.sessions[h.Session] != nil {
		return nil
	}
	return mb.seats[i].contender
}

func (mb *membership) holderOf(e table.Entry) *peer {
	if e.Vacant() {
		return nil
	}
	return mb.sessions[e.Holder.Session]
}

// claimed reports whether a source may yet say that it has let go of what went
// under the ticket. One that is past its deadline is not waited for.
func (mb *membership) claimed(now mono.Instant, t protocol.Ticket) bool {
	for _, p := range mb.sessions {
		if now >= p.renewal.until {
			continue
		}
		if _, open := p.moves.ended[t]; open || !p.claims.reconciled() && len(p.held.leases) > 0 {
			return true // we do not know what it has to say
		}
		if slices.ContainsFunc(p.moves.reports, func(r protocol.MoveReport) bool { return r.Ticket == t && r.State != protocol.MoveFailed }) {
			return true
		}
	}
	return false
}

// backlog is how many moves have not begun.
func (mb *membership) backlog() int {
	n := 0
	for _, s := range mb.seats {
		n += len(s.incumbent.moves.backlog)
	}
	return n
}

// clearBacklog forgets what the plan before asked for.
func (mb *membership) clearBacklog() {
	for _, s := range mb.seats {
		s.incumbent.moves.backlog, s.incumbent.moves.blocked = nil, nil
	}
}

// arrives reports whether a lease goes to where its state is. If that owner is
// gone by now, the state is lost after all.
func (mb *membership) arrives(f *freed) bool {
	if f.moved == nil {
		return false
	}
	to := f.moved.to
	return mb.sessions[to.holder.Session] == to && to.member()
}

// alternativeTarget is who is to have a range that its target could not take: whoever else
// can, and has the least to do.
func (mb *membership) alternativeTarget(mv *move) *seat {
	best := mv.to.seat
	for _, s := range mb.seats {
		p := s.incumbent
		if s == mv.to.seat || p == mv.from || p.exit.retires() || !mv.from.moves.movable(s) {
			continue
		}
		if best == mv.to.seat || len(p.moves.in) < len(best.incumbent.moves.in) || len(p.moves.in) == len(best.incumbent.moves.in) && len(p.held.leases) < len(best.incumbent.held.leases) {
			best = s
		}
	}
	return best
}
