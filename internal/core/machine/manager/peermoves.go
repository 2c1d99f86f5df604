package manager

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// peerMoves is the state that moves from a session and to it. Every move in out or in is also in
// Machine.moves.all.
type peerMoves struct {
	// mover is where it takes in state; empty if it cannot move any.
	mover string
	// identity is the authenticated name of the session; empty if it has none.
	identity string
	// out and in are the moves from it and to it.
	out, in []*move
	// backlog is the moves from it that the plan asks for and that have not begun,
	// and blocked the sources that wait to move something to it.
	backlog []wanted
	blocked []*peer
	ready   bool         // it is in Machine.moves.ready: a move from it may be able to begin
	retryAt mono.Instant // no move from it begins before
	// handed is what it has let go of with its state, while that is not recorded.
	handed []protocol.Departure
	// arriving is what others have handed over to it, as long.
	arriving []protocol.Arrival
	// reports and imports are what it last reported about moves from it and to it.
	reports []protocol.MoveReport
	imports []protocol.Import
	// ended holds moves from it that are over for us, until its requests reflect that:
	// ticket to the message that said so first, 0 if none did yet.
	ended map[protocol.Ticket]protocol.Seq
	// orders: what it was last told about moves, or about draining, is not so
	// any more.
	orders bool
}

// want adds a row of the table to what p is to send to whoever has the seat.
func (v *peerMoves) want(r leasehold.Range, to *seat) {
	if n := len(v.backlog); n > 0 && v.backlog[n-1].to == to && v.backlog[n-1].Limit == r.Start {
		v.backlog[n-1].Limit = r.Limit
		return
	}
	v.backlog = append(v.backlog, wanted{r, to})
}

// moving reports whether a part of a range is on its way from p.
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

// ackEnds forgets the moves of which a source knows that they are over.
func (v *peerMoves) ackEnds(applied protocol.Seq) {
	for t, first := range v.ended {
		if first != 0 && first <= applied {
			delete(v.ended, t)
		}
	}
}

// movable reports whether the session can move state to whoever has the seat. It assumes
// so of an owner that this leader has not heard yet.
func (v *peerMoves) movable(to *seat) bool {
	if v.mover == "" || to == nil || to.gone || !to.incumbent.member() {
		return false
	}
	return to.incumbent.moves.mover != "" || to.incumbent.acks.echo == 0
}
