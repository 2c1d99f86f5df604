package manager

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// peerMoves is the moves from a session and to it. Every move in out or in is also in Machine.moves.all.
type peerMoves struct {
	// mover is the address at which it receives state; empty if it cannot move state.
	mover string
	// identity is the authenticated name of the session; empty if it has none.
	identity string
	// out and in are the moves from it and to it.
	out, in []*move
	// backlog is the moves from it that the plan requires and that have not started, and blocked the sources that
	// wait for this target.
	backlog []wanted
	blocked []*peer
	ready   bool         // it is in Machine.moves.ready: a move from it may be able to start
	retryAt mono.Instant // no move from it starts before
	// handed is the ranges that it has released with their state, until they are recorded.
	handed []protocol.Departure
	// arriving is the ranges that others have handed over to it, until they are recorded.
	arriving []protocol.Arrival
	// reports and imports are its newest reports of moves from it and to it.
	reports []protocol.MoveReport
	// awaiting is the reports that are not processed yet because the target may return.
	awaiting []protocol.MoveReport
	imports  []protocol.Import
	// ended is the moves from it that have ended for this leader, until its requests acknowledge that: ticket to
	// the first message without the move, 0 if none was sent.
	ended map[protocol.Ticket]protocol.Seq
	// orders: the last message about moves or draining is out of date.
	orders bool
}

// want adds a range to the backlog of moves to the seat.
func (v *peerMoves) want(r leasehold.Range, to *seat) {
	if n := len(v.backlog); n > 0 && v.backlog[n-1].to == to && v.backlog[n-1].Limit == r.Start {
		v.backlog[n-1].Limit = r.Limit
		return
	}
	v.backlog = append(v.backlog, wanted{r, to})
}

// moving reports whether a move from p overlaps a range.
func (v *peerMoves) moving(r leasehold.Range) bool {
	return slices.ContainsFunc(v.out, func(mv *move) bool { return mv.Overlaps(r) })
}

func (v *peerMoves) arrivals() []protocol.Arrival {
	out := slices.Clone(v.arriving)
	for _, mv := range v.in {
		out = append(out, protocol.Arrival{Ticket: mv.ticket, Range: mv.Range, From: mv.from.holder, Since: mv.since, Identity: mv.from.moves.identity})
	}
	return out
}

// ackEnds removes ended moves that the source has acknowledged.
func (v *peerMoves) ackEnds(applied protocol.Seq) {
	for t, first := range v.ended {
		if first != 0 && first <= applied {
			delete(v.ended, t)
		}
	}
}

// movable reports whether the session can move state to the incumbent of the seat. It assumes so of an owner that
// has sent no request in this term.
func (v *peerMoves) movable(to *seat) bool {
	if v.mover == "" || to == nil || to.gone || !to.incumbent.member() {
		return false
	}
	return to.incumbent.moves.mover != "" || to.incumbent.acks.echo == 0
}
