package manager

import (
	"encoding/binary"
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/mono"
	"github.com/leasehold-dev/leasehold/internal/protocol"
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

// movable reports whether p can move state to whoever has the seat. It assumes
// so of an owner that this leader has not heard yet.
func (p *peer) movable(to *seat) bool {
	if p.mover == "" || to == nil || to.gone || !to.incumbent.member() {
		return false
	}
	return to.incumbent.mover != "" || to.incumbent.echo == 0
}

// compareMovers notes that a new member cannot move state, and others can: most
// likely it was forgotten, and what goes there or comes from there is lost.
func (m *Machine) compareMovers(p *peer) {
	if p.mover != "" {
		return
	}
	able := 0
	for _, s := range m.seats {
		if s.incumbent.mover != "" {
			able++
		}
	}
	if able > 0 {
		m.note(NoteNoMover, p.holder.Owner, uint64(able), 0)
	}
}

// stays reports whether p keeps, for now, what the plan has for whoever has the
// seat: because that is p, because its state is moved there first, or because p
// is about to go and there is nobody to take it.
func (m *Machine) stays(p *peer, planned *seat) bool {
	switch {
	case planned == p.seat:
		return true
	case planned == nil:
		return p.retires()
	case planned.gone || !planned.incumbent.member():
		return true // there will be another plan
	}
	return p.movable(planned)
}

// moving reports whether a part of a range is on its way from p.
func (p *peer) moving(r leasehold.Range) bool {
	return slices.ContainsFunc(p.out, func(mv *move) bool { return mv.Overlaps(r) })
}

func (m *Machine) start(now mono.Instant, from, to *peer, r leasehold.Range) {
	mv := &move{ticket: m.newTicket(), since: protocol.Since{LSN: m.table.LSN(), Newest: m.table.Newest()}, Range: r, from: from, to: to, began: now, deadline: now.Add(m.cfg.MoveTimeout)}
	m.note(NoteMoveBegun, from.holder.Owner, 0, 0)
	m.moves = append(m.moves, mv)
	from.out = append(from.out, mv)
	to.in = append(to.in, mv)
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
	p.orders, p.plain = true, false
	m.touch(p)
}

// end forgets a move. Both sides learn of it by its absence.
func (m *Machine) end(mv *move) {
	is := func(other *move) bool { return other == mv }
	m.moves = slices.DeleteFunc(m.moves, is)
	mv.from.out = slices.DeleteFunc(mv.from.out, is)
	mv.to.in = slices.DeleteFunc(mv.to.in, is)
	if mv.from.ended == nil {
		mv.from.ended = make(map[protocol.Ticket]protocol.Seq)
	}
	mv.from.ended[mv.ticket] = 0
	m.ordered(mv.from)
	m.ordered(mv.to)
	m.getReady(mv.from)
	m.unblock(mv.to)
	m.mendAt = 0 // what it has may be joined now
	m.lookAgain()
}

// lookAgain compares the table with the plan once more, if something was left
// for later.
func (m *Machine) lookAgain() {
	m.rescan = m.rescan || m.again
	m.again = false
}

func (m *Machine) noteEnd(now mono.Instant, mv *move, how Notable) {
	m.emit(Note{
		What: how, Owner: mv.from.holder.Owner, Have: mv.report.Records, Want: mv.report.Bytes,
		To: mv.to.holder.Owner, Range: mv.Range, Took: now.Sub(mv.began),
	})
}

// fail ends a move that has come to nothing. The range stays where it is, until
// the policy is asked again; of an owner that wants to go it is tried again.
func (m *Machine) fail(now mono.Instant, mv *move, why Notable) {
	m.noteEnd(now, mv, why)
	m.end(mv)
	switch {
	case mv.from == mv.to:
		m.mendAt = now.Add(m.cfg.Timing.Renew)
		m.wakeAt(m.mendAt)
	case !mv.from.member() || !m.stillWanted(mv.Range, mv.from, mv.to.seat):
	case mv.from.retires():
		m.desired.Set(mv.Range, m.another(mv))
		m.amended = true
		m.retryMoves(now, mv.from)
	default:
		m.desired.Set(mv.Range, mv.from.seat)
		m.amended = true
	}
}

// another is who is to have a range that its target could not take: whoever else
// can, and has the least to do.
func (m *Machine) another(mv *move) *seat {
	best := mv.to.seat
	for _, s := range m.seats {
		p := s.incumbent
		if s == mv.to.seat || p == mv.from || p.retires() || !mv.from.movable(s) {
			continue
		}
		if best == mv.to.seat || len(p.in) < len(best.incumbent.in) || len(p.in) == len(best.incumbent.in) && len(p.leases) < len(best.incumbent.leases) {
			best = s
		}
	}
	return best
}

// spareState sees to it that what an owner that retires has goes to others that
// can take its state, if there are any. Policies do not know who can.
func (m *Machine) spareState() {
	for _, s := range m.seats {
		if p := s.incumbent; p.retires() && p.mover != "" {
			m.spareStateOf(p)
		}
	}
}

func (m *Machine) spareStateOf(p *peer) {
	var takers []*seat
	for _, s := range m.seats {
		if s != p.seat && !s.incumbent.retires() && p.movable(s) {
			takers = append(takers, s)
		}
	}
	var lost []leasehold.Range
	for _, l := range p.leases {
		for r, planned := range m.desired.Within(l.Range) {
			if planned != nil && planned != p.seat && !p.movable(planned) {
				lost = append(lost, r)
			}
		}
	}
	for i, r := range lost {
		if len(takers) > 0 {
			m.desired.Set(r, takers[i%len(takers)])
			m.amended = true
		}
	}
}

// retryMoves compares the table with the plan again, but not at once. Until then
// no move of p begins.
func (m *Machine) retryMoves(now mono.Instant, p *peer) {
	p.retryAt = now.Add(m.cfg.Timing.Renew)
	m.rescanAt = min(m.rescanAt, p.retryAt)
	m.wakeAt(m.rescanAt)
}

// endMoves ends all moves of a peer that is gone.
func (m *Machine) endMoves(p *peer) {
	for _, mv := range slices.Concat(p.out, p.in) {
		m.end(mv)
	}
}

// reviewMoves cancels what the plan no longer wants.
func (m *Machine) reviewMoves() {
	for _, mv := range slices.Clone(m.moves) {
		if !m.stillWanted(mv.Range, mv.from, mv.to.seat) || !mv.from.movable(mv.to.seat) {
			m.note(NoteMoveCancelled, mv.from.holder.Owner, 0, 0)
			m.end(mv)
		}
	}
}

// stillWanted reports whether the plan has the range for the target, and the
// source holds it.
func (m *Machine) stillWanted(r leasehold.Range, from *peer, to *seat) bool {
	for _, s := range m.desired.Within(r) {
		if s != to {
			return false
		}
	}
	return from.holds(r)
}

// holds reports whether a peer has all of a range.
func (p *peer) holds(r leasehold.Range) bool {
	i, _ := slices.BinarySearchFunc(p.leases, r.Start, func(l leasehold.Lease, k leasehold.Key) int {
		if l.Range.Last() < k {
			return -1
		}
		return 1
	})
	for next := r.Start; i < len(p.leases); i++ {
		l := p.leases[i].Range
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

// unsure reports whether a peer has not confirmed yet that it has all of a range.
func (p *peer) unsure(r leasehold.Range) bool {
	return !p.settled || len(p.fresh) > 0 && slices.ContainsFunc(p.leases, func(l leasehold.Lease) bool {
		_, fresh := p.fresh[l.Generation]
		return fresh && l.Range.Overlaps(r)
	})
}

// pruneMoves ends moves of what a peer no longer has.
func (m *Machine) pruneMoves(p *peer) {
	for _, mv := range slices.Clone(p.out) {
		if !p.holds(mv.Range) {
			m.again = true // the rest of it
			m.end(mv)
		}
	}
}

// hopeless reports whether one end of a move wants to leave, and the other is past its deadline, and
// kept only because no other owner can have its ranges. The one that leaves would wait for it in vain.
func (mv *move) hopeless(now mono.Instant) bool {
	return mv.from.parting && now >= mv.to.until || mv.to.parting && now >= mv.from.until
}

// overdueMoves fails those that have made no progress for too long.
func (m *Machine) overdueMoves(now mono.Instant) {
	for _, mv := range slices.Clone(m.moves) {
		if now >= mv.deadline || mv.hopeless(now) {
			m.fail(now, mv, NoteMoveTimeout)
			continue
		}
		m.wakeAt(mv.deadline)
	}
}

// toldEnds remembers which message tells a source first that moves are over.
func (m *Machine) toldEnds(p *peer) {
	for t, first := range p.ended {
		if first == 0 {
			p.ended[t] = m.seq
		}
	}
}

// heardEnds forgets the moves of which a source knows that they are over.
func (p *peer) heardEnds(applied protocol.Seq) {
	for t, first := range p.ended {
		if first != 0 && first <= applied {
			delete(p.ended, t)
		}
	}
}

// reported hears how far a source is with its moves. Which of them are done is
// seen when the leases are missing.
func (m *Machine) reported(now mono.Instant, p *peer, reports []protocol.MoveReport) {
	for _, r := range reports {
		i := slices.IndexFunc(p.out, func(mv *move) bool { return mv.ticket == r.Ticket })
		if i < 0 {
			continue
		}
		mv := p.out[i]
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
	out := slices.Clone(p.handed)
	if !p.settled {
		for _, r := range p.reports { // not acted on yet: it must not stop saying it
			if r.State == protocol.MoveDone {
				out = append(out, protocol.Departure{Ticket: r.Ticket, Range: r.Range, To: r.To})
			}
		}
	}
	for _, mv := range p.out {
		out = append(out, protocol.Departure{Ticket: mv.ticket, Range: mv.Range, To: mv.to.holder, Mover: mv.to.mover, Identity: mv.to.identity})
	}
	return out
}

func (p *peer) arrivals() []protocol.Arrival {
	out := slices.Clone(p.arriving)
	for _, mv := range p.in {
		out = append(out, protocol.Arrival{Ticket: mv.ticket, Range: mv.Range, From: mv.from.holder, Since: mv.since, Identity: mv.from.identity})
	}
	return out
}

// noticeIdle remembers to tell those who wait for it that there is nothing left
// to wait for.
func (m *Machine) noticeIdle(now mono.Instant) {
	m.parting = slices.DeleteFunc(m.parting, func(p *peer) bool { return m.sessions[p.holder.Session] != p })
	for _, p := range m.parting {
		if !p.idleSaid && m.idle(now, p) {
			m.ordered(p)
		}
	}
}

// claimed reports whether a source may yet say that it has let go of what went
// under the ticket. One that is past its deadline is not waited for.
func (m *Machine) claimed(now mono.Instant, t protocol.Ticket) bool {
	for _, p := range m.sessions {
		if now >= p.until {
			continue
		}
		if _, open := p.ended[t]; open || !p.settled && len(p.leases) > 0 {
			return true // we do not know what it has to say
		}
		if slices.ContainsFunc(p.reports, func(r protocol.MoveReport) bool { return r.Ticket == t && r.State != protocol.MoveFailed }) {
			return true
		}
	}
	return false
}

// idle reports whether there is nothing that p, which wants to leave, should
// still wait for. An owner that is past its deadline takes nothing, unless it has got more time to return.
func (m *Machine) idle(now mono.Instant, p *peer) bool {
	if !p.parting || m.replan || m.rescan || len(p.out)+len(p.in)+len(p.handed) > 0 {
		return false
	}
	for i := range p.imports {
		if m.claimed(now, p.imports[i].Ticket) {
			return false
		}
	}
	for _, l := range p.leases {
		for _, s := range m.desired.Within(l.Range) {
			if s != nil && (s.gone || now < s.incumbent.until) {
				return false
			}
		}
	}
	return true
}
