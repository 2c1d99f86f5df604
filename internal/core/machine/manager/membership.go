package manager

import (
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// membership is the sessions, and the session that has each owner name. Every session is the incumbent or the
// contender of one seat, or a ghost.
type membership struct {
	sessions map[leasehold.Session]*peer
	seats    []*seat // sorted by owner; each has an incumbent
	// duplicates are sessions that two processes use.
	duplicates map[leasehold.Session]*duplicate
	connected  int     // sessions that have sent a request in this term
	parting    []*peer // those that have asked to leave
	// inherited is the number of sessions found in the table, or reported by those as targets of moves.
	inherited int
	// named is the number of those found in the table.
	named int
	// inheritUntil is when inherited leases expire whose owners have sent no request.
	inheritUntil mono.Instant
	// fullUntil: no session is added before (see makeRoom).
	fullUntil mono.Instant
}

// seat returns the seat of an owner name, and creates it if there is none.
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

// ghosts returns the sessions without a seat that still have leases, in a fixed order. This is rare.
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

// foreignSession reports whether a session belongs to another owner. Lookups receive the sessions of all owners,
// and could send requests in their name otherwise.
func (mb *membership) foreignSession(h *table.Holder) bool {
	p := mb.sessions[h.Session]
	return p != nil && p.holder.Owner != h.Owner
}

// contenderFor returns the session that already waits for the owner name of an unknown session; nil if there is
// none. One session at a time may wait, until it expires.
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

// claimed reports whether a source may still report a completed move under the ticket. Sources past their deadline
// do not count.
func (mb *membership) claimed(now mono.Instant, t protocol.Ticket) bool {
	for _, p := range mb.sessions {
		if now >= p.renewal.until {
			continue
		}
		if _, open := p.moves.ended[t]; open || !p.claims.reconciled() && len(p.held.leases) > 0 {
			return true // its reports are not complete yet
		}
		if slices.ContainsFunc(p.moves.reports, func(r protocol.MoveReport) bool { return r.Ticket == t && r.State != protocol.MoveFailed }) {
			return true
		}
	}
	return false
}

// backlog returns the number of moves that have not started.
func (mb *membership) backlog() int {
	n := 0
	for _, s := range mb.seats {
		n += len(s.incumbent.moves.backlog)
	}
	return n
}

// clearBacklog removes the moves that the last plan required.
func (mb *membership) clearBacklog() {
	for _, s := range mb.seats {
		s.incumbent.moves.backlog, s.incumbent.moves.blocked = nil, nil
	}
}

// arrives reports whether the target of a freed lease's state is still a member. If not, the state is lost.
func (mb *membership) arrives(f *freed) bool {
	if f.moved == nil {
		return false
	}
	to := f.moved.to
	return mb.sessions[to.holder.Session] == to && to.member()
}

// alternativeTarget returns another target for a range whose target failed: an owner that can move state, with the
// fewest incoming moves and then the fewest leases.
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
