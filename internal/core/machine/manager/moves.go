package manager

import (
	"encoding/binary"
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// Where the plan wants a range to go from one owner to another, and both can
// move state, nothing is recalled. The source keeps the lease, is told to send
// the state, and lets go when the target has it all (see package protocol). The
// leader only starts moves, a few at a time, and hears how they end.
//
// A move is nothing that must survive the leader. What makes a range change
// hands is what the source says when it lets go, and that is believed whether or
// not this leader has ever heard of the move: the target takes the lease only if
// it has the state.

// A move is state on its way from one owner to another, or to itself: then it
// joins leases that lie side by side.
type move struct {
	ticket protocol.Ticket
	since  protocol.Since
	leasehold.Range
	from, to *peer
	report   protocol.MoveReport // what the source last said
	began    mono.Instant
	deadline mono.Instant // if nothing moves until then it has failed
}

// compareMovers notes that a new member cannot move state, and others can: most
// likely it was forgotten, and what goes there or comes from there is lost.
func (m *Machine) compareMovers(p *peer) {
	if p.moves.mover != "" {
		return
	}
	able := 0
	for _, s := range m.members.seats {
		if s.incumbent.moves.mover != "" {
			able++
		}
	}
	if able > 0 {
		m.emit(Note{What: NoteNoMover, Owner: p.holder.Owner, Owners: able})
	}
}

// stays reports whether p keeps, for now, what the plan has for whoever has the
// seat: because that is p, because its state is moved there first, or because p
// is about to go and there is nobody to take it.
func (p *peer) stays(planned *seat) bool {
	switch {
	case planned == p.seat:
		return true
	case planned == nil:
		return p.exit.retires()
	case planned.gone || !planned.incumbent.member():
		return true // there will be another plan
	}
	return p.moves.movable(planned)
}

func (m *Machine) start(now mono.Instant, from, to *peer, r leasehold.Range) {
	mv := &move{ticket: m.newTicket(), since: protocol.Since{LSN: m.state.table.LSN(), Newest: m.state.table.Newest()}, Range: r, from: from, to: to, began: now, deadline: now.Add(m.cfg.MoveTimeout)}
	m.emit(Note{What: NoteMoveBegun, Owner: from.holder.Owner})
	m.moves.all = append(m.moves.all, mv)
	from.moves.out = append(from.moves.out, mv)
	to.moves.in = append(to.moves.in, mv)
	m.ordered(from)
	m.ordered(to)
	m.wakeAt(mv.deadline)
}

func (m *Machine) newTicket() (t protocol.Ticket) {
	for t.IsZero() {
		binary.LittleEndian.PutUint64(t[:8], m.cfg.Rand.Uint64())
		binary.LittleEndian.PutUint64(t[8:], m.cfg.Rand.Uint64())
	}
	return t
}

// ordered remembers that p must hear about its moves.
func (m *Machine) ordered(p *peer) {
	p.moves.orders, p.held.plain = true, false
	m.touch(p)
}

// end forgets a move. Both sides learn of it by its absence.
func (m *Machine) end(mv *move) {
	is := func(other *move) bool { return other == mv }
	m.moves.all = slices.DeleteFunc(m.moves.all, is)
	mv.from.moves.out = slices.DeleteFunc(mv.from.moves.out, is)
	mv.to.moves.in = slices.DeleteFunc(mv.to.moves.in, is)
	if mv.from.moves.ended == nil {
		mv.from.moves.ended = make(map[protocol.Ticket]protocol.Seq)
	}
	mv.from.moves.ended[mv.ticket] = 0
	m.ordered(mv.from)
	m.ordered(mv.to)
	m.moves.markReady(mv.from)
	m.moves.unblock(mv.to)
	m.compaction.notBefore = 0 // what it has may be joined now
	m.plan.rescanIfPending()
}

func (m *Machine) noteEnd(now mono.Instant, mv *move, how Notable) {
	m.emit(Note{
		What: how, Owner: mv.from.holder.Owner, To: mv.to.holder.Owner, Range: mv.Range,
		Records: mv.report.Records, Bytes: mv.report.Bytes, Took: now.Sub(mv.began),
	})
}

// fail ends a move that has come to nothing. The range stays where it is, until
// the policy is asked again; of an owner that wants to go it is tried again.
func (m *Machine) fail(now mono.Instant, mv *move, why Notable) {
	m.noteEnd(now, mv, why)
	m.end(mv)
	switch {
	case mv.from == mv.to:
		m.compaction.notBefore = now.Add(m.cfg.Timing.Renew)
		m.wakeAt(m.compaction.notBefore)
	case !mv.from.member() || !m.plan.stillWanted(mv.Range, mv.from, mv.to.seat):
	case mv.from.exit.retires():
		m.plan.desired.Set(mv.Range, m.members.alternativeTarget(mv))
		m.plan.amended = true
		m.retryMoves(now, mv.from)
	default:
		m.plan.desired.Set(mv.Range, mv.from.seat)
		m.plan.amended = true
	}
}

// preserveState sees to it that what an owner that retires has goes to others that
// can take its state, if there are any. Policies do not know who can.
func (m *Machine) preserveState() {
	for _, s := range m.members.seats {
		if p := s.incumbent; p.exit.retires() && p.moves.mover != "" {
			m.preserveStateOf(p)
		}
	}
}

func (m *Machine) preserveStateOf(p *peer) {
	var takers []*seat
	for _, s := range m.members.seats {
		if s != p.seat && !s.incumbent.exit.retires() && p.moves.movable(s) {
			takers = append(takers, s)
		}
	}
	var lost []leasehold.Range
	for _, l := range p.held.leases {
		for r, planned := range m.plan.desired.Within(l.Range) {
			if planned != nil && planned != p.seat && !p.moves.movable(planned) {
				lost = append(lost, r)
			}
		}
	}
	for i, r := range lost {
		if len(takers) > 0 {
			m.plan.desired.Set(r, takers[i%len(takers)])
			m.plan.amended = true
		}
	}
}

// retryMoves compares the table with the plan again, but not at once. Until then
// no move of p begins.
func (m *Machine) retryMoves(now mono.Instant, p *peer) {
	p.moves.retryAt = now.Add(m.cfg.Timing.Renew)
	m.plan.rescanAt = min(m.plan.rescanAt, p.moves.retryAt)
	m.wakeAt(m.plan.rescanAt)
}

// endMoves ends all moves of a peer that is gone.
func (m *Machine) endMoves(p *peer) {
	for _, mv := range slices.Concat(p.moves.out, p.moves.in) {
		m.end(mv)
	}
}

// reviewMoves cancels what the plan no longer wants.
func (m *Machine) reviewMoves() {
	for _, mv := range slices.Clone(m.moves.all) {
		if !m.plan.stillWanted(mv.Range, mv.from, mv.to.seat) || !mv.from.moves.movable(mv.to.seat) {
			m.emit(Note{What: NoteMoveCancelled, Owner: mv.from.holder.Owner})
			m.end(mv)
		}
	}
}

// unconfirmed reports whether a peer has not confirmed yet that it has all of a range.
func (p *peer) unconfirmed(r leasehold.Range) bool {
	return !p.claims.reconciled() || len(p.held.fresh) > 0 && slices.ContainsFunc(p.held.leases, func(l leasehold.Lease) bool {
		_, fresh := p.held.fresh[l.Generation]
		return fresh && l.Range.Overlaps(r)
	})
}

// pruneMoves ends moves of what a peer no longer has.
func (m *Machine) pruneMoves(p *peer) {
	for _, mv := range slices.Clone(p.moves.out) {
		if !p.held.covers(mv.Range) {
			m.plan.rescanPending = true // the rest of it
			m.end(mv)
		}
	}
}

// stuck reports whether one end of a move wants to leave, and the other is past its deadline, and
// kept only because no other owner can have its ranges. The one that leaves would wait for it in vain.
func (mv *move) stuck(now mono.Instant) bool {
	return mv.from.exit.parting() && now >= mv.to.renewal.until || mv.to.exit.parting() && now >= mv.from.renewal.until
}

// overdueMoves fails those that have made no progress for too long.
func (m *Machine) overdueMoves(now mono.Instant) {
	for _, mv := range slices.Clone(m.moves.all) {
		if now >= mv.deadline || mv.stuck(now) {
			m.fail(now, mv, NoteMoveTimeout)
			continue
		}
		m.wakeAt(mv.deadline)
	}
}

// recordSentEnds remembers which message tells a source first that moves are over.
func (m *Machine) recordSentEnds(p *peer) {
	for t, first := range p.moves.ended {
		if first == 0 {
			p.moves.ended[t] = m.lead.seq
		}
	}
}

// reported hears how far a source is with its moves. Which of them are done is
// seen when the leases are missing.
func (m *Machine) reported(now mono.Instant, p *peer, reports []protocol.MoveReport) {
	for _, r := range reports {
		i := slices.IndexFunc(p.moves.out, func(mv *move) bool { return mv.ticket == r.Ticket })
		if i < 0 {
			continue
		}
		mv := p.moves.out[i]
		if r.State != mv.report.State || r.Records != mv.report.Records || r.Bytes != mv.report.Bytes {
			mv.deadline = now.Add(m.cfg.MoveTimeout)
			m.wakeAt(mv.deadline)
		}
		mv.report = r
		switch r.State {
		case protocol.MoveFailed:
			m.fail(now, mv, NoteMoveFailed)
		case protocol.MoveDone:
			m.noteEnd(now, mv, NoteMoveDone)
			m.end(mv)
		case protocol.MoveCopying, protocol.MoveStopped:
		}
	}
}

// departures and arrivals are what p is told about moves. What it has handed
// over, or what was handed over to it, is among them until the table says so: for
// as long the source repeats that it has let go, and should we not live to record
// it, it will tell our successor; and the target keeps the state.
func (p *peer) departures() []protocol.Departure {
	out := slices.Clone(p.moves.handed)
	if !p.claims.reconciled() {
		for _, r := range p.moves.reports { // not acted on yet: it must not stop saying it
			if r.State == protocol.MoveDone {
				out = append(out, protocol.Departure{Ticket: r.Ticket, Range: r.Range, To: r.To})
			}
		}
	}
	for _, mv := range p.moves.out {
		out = append(out, protocol.Departure{Ticket: mv.ticket, Range: mv.Range, To: mv.to.holder, Mover: mv.to.moves.mover, Identity: mv.to.moves.identity})
	}
	return out
}

// detectIdle remembers to tell those who wait for it that there is nothing left
// to wait for.
func (m *Machine) detectIdle(now mono.Instant) {
	m.members.parting = slices.DeleteFunc(m.members.parting, func(p *peer) bool { return m.members.sessions[p.holder.Session] != p })
	for _, p := range m.members.parting {
		if p.exit.stage != partingIdle && m.idle(now, p) {
			m.ordered(p)
		}
	}
}

// idle reports whether there is nothing that p, which wants to leave, should
// still wait for. An owner that is past its deadline takes nothing, unless it has got more time to return.
func (m *Machine) idle(now mono.Instant, p *peer) bool {
	if !p.exit.parting() || m.plan.replan || m.plan.rescan || len(p.moves.out)+len(p.moves.in)+len(p.moves.handed) > 0 {
		return false
	}
	for i := range p.moves.imports {
		if m.members.claimed(now, p.moves.imports[i].Ticket) {
			return false
		}
	}
	for _, l := range p.held.leases {
		for _, s := range m.plan.desired.Within(l.Range) {
			if s != nil && (s.gone || now < s.incumbent.renewal.until) {
				return false
			}
		}
	}
	return true
}
