package manager

import (
	"encoding/binary"
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// If the plan moves a range between owners that can both move state, the lease is not recalled. The source keeps
// the lease, sends the state, and releases the lease when the target has all of it (see package protocol). The
// leader only starts moves, with a limit, and receives their results.
//
// Moves need not survive the leader. A range changes its owner when the source reports that it has released it. Any
// leader accepts this report, even if it did not order the move: the target takes the lease only if it has the
// state.

// A move is the transfer of a range's state from one owner to another, or to itself, which merges adjacent leases.
type move struct {
	ticket protocol.Ticket
	since  protocol.Since
	leasehold.Range
	from, to *peer
	report   protocol.MoveReport // the newest report of the source
	began    mono.Instant
	deadline mono.Instant // the move fails if there is no progress until then
}

// compareMovers notes that a new member cannot move state although others can. That is probably a configuration
// error: the state of ranges that go to it or come from it is lost.
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

// stays reports whether p keeps, for now, a range that the plan assigns to the seat: the seat is p's, the state is
// moved there first, or p retires and no owner can take the range.
func (p *peer) stays(planned *seat) bool {
	switch {
	case planned == p.seat:
		return true
	case planned == nil:
		return p.exit.retires()
	case planned.gone || !planned.incumbent.member():
		return true // another plan follows
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

// ordered marks that the moves of p have changed, and p needs a message.
func (m *Machine) ordered(p *peer) {
	p.moves.orders, p.held.plain = true, false
	m.touch(p)
}

// end removes a move. Its absence from the next messages ends it at both owners.
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
	m.compaction.notBefore = 0 // its leases may be mergeable now
	m.plan.rescanIfPending()
}

func (m *Machine) noteEnd(now mono.Instant, mv *move, how Notable) {
	m.emit(Note{
		What: how, Owner: mv.from.holder.Owner, To: mv.to.holder.Owner, Range: mv.Range,
		Records: mv.report.Records, Bytes: mv.report.Bytes, Took: now.Sub(mv.began),
	})
}

// fail ends a failed move. The range stays where it is until the next policy run; if the source retires, the move
// is retried.
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

// preserveState assigns the ranges of retiring owners to owners that can take their state, if there are any.
// Policies do not consider that.
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

// retryMoves schedules a rescan after a delay. No move from p starts before.
func (m *Machine) retryMoves(now mono.Instant, p *peer) {
	p.moves.retryAt = now.Add(m.cfg.Timing.Renew)
	m.plan.rescanAt = min(m.plan.rescanAt, p.moves.retryAt)
	m.wakeAt(m.plan.rescanAt)
}

// endMoves ends all moves from and to a peer that is removed.
func (m *Machine) endMoves(p *peer) {
	for _, mv := range slices.Concat(p.moves.out, p.moves.in) {
		m.end(mv)
	}
}

// reviewMoves cancels moves that the plan no longer requires.
func (m *Machine) reviewMoves() {
	for _, mv := range slices.Clone(m.moves.all) {
		if !m.plan.stillWanted(mv.Range, mv.from, mv.to.seat) || !mv.from.moves.movable(mv.to.seat) {
			m.emit(Note{What: NoteMoveCancelled, Owner: mv.from.holder.Owner})
			m.end(mv)
		}
	}
}

// unconfirmed reports whether a peer has not confirmed all leases in a range.
func (p *peer) unconfirmed(r leasehold.Range) bool {
	return !p.claims.reconciled() || len(p.held.fresh) > 0 && slices.ContainsFunc(p.held.leases, func(l leasehold.Lease) bool {
		_, fresh := p.held.fresh[l.Generation]
		return fresh && l.Range.Overlaps(r)
	})
}

// pruneMoves ends moves of ranges that a peer no longer has.
func (m *Machine) pruneMoves(p *peer) {
	for _, mv := range slices.Clone(p.moves.out) {
		if !p.held.covers(mv.Range) {
			m.plan.rescanPending = true // for the rest of the range
			m.end(mv)
		}
	}
}

// stuck reports whether one side of a move is leaving, and the other is past its deadline and kept only because no
// other owner can take its ranges. The move cannot finish, and would block the owner that leaves.
func (mv *move) stuck(now mono.Instant) bool {
	return mv.from.exit.parting() && now >= mv.to.renewal.until || mv.to.exit.parting() && now >= mv.from.renewal.until
}

// overdueMoves fails moves that have made no progress for too long.
func (m *Machine) overdueMoves(now mono.Instant) {
	for _, mv := range slices.Clone(m.moves.all) {
		if now >= mv.deadline || mv.stuck(now) {
			m.fail(now, mv, NoteMoveTimeout)
			continue
		}
		m.wakeAt(mv.deadline)
	}
}

// recordSentEnds records the first message that reports the end of moves to a source.
func (m *Machine) recordSentEnds(p *peer) {
	for t, first := range p.moves.ended {
		if first == 0 {
			p.moves.ended[t] = m.lead.seq
		}
	}
}

// reported applies the move reports of a source. A completed move takes effect when the leases are missing in the
// request.
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

// departures returns the moves from p for a message. Completed moves stay in the list until they are recorded: as
// long, the source repeats its report, also to a successor of this leader, and the target keeps the state.
func (p *peer) departures() []protocol.Departure {
	out, open := slices.Clone(p.moves.handed), p.moves.awaiting
	if !p.claims.reconciled() {
		open = p.moves.reports
	}
	for _, r := range open { // not processed yet: p must keep reporting them
		if r.State == protocol.MoveDone {
			out = append(out, protocol.Departure{Ticket: r.Ticket, Range: r.Range, To: r.To})
		}
	}
	for _, mv := range p.moves.out {
		out = append(out, protocol.Departure{Ticket: mv.ticket, Range: mv.Range, To: mv.to.holder, Mover: mv.to.moves.mover, Identity: mv.to.moves.identity})
	}
	return out
}

// detectIdle schedules a message to leaving owners that have nothing left to wait for.
func (m *Machine) detectIdle(now mono.Instant) {
	m.members.parting = slices.DeleteFunc(m.members.parting, func(p *peer) bool { return m.members.sessions[p.holder.Session] != p })
	for _, p := range m.members.parting {
		if p.exit.stage != partingIdle && m.idle(now, p) {
			m.ordered(p)
		}
	}
}

// idle reports whether p, which is leaving, has nothing left to wait for. An owner past its deadline takes no
// ranges, unless an outage gave it more time to return.
func (m *Machine) idle(now mono.Instant, p *peer) bool {
	if !p.exit.parting() || m.plan.replan || m.plan.rescan || len(p.moves.out)+len(p.moves.in)+len(p.moves.handed)+len(p.moves.awaiting) > 0 {
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
