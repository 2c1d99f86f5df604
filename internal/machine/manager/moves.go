package manager

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/mono"
	"github.com/leasehold-dev/leasehold/internal/protocol"
	"github.com/leasehold-dev/leasehold/internal/table"
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

// A transfer is a range whose state is with another owner already.
type transfer struct {
	to     *peer
	ticket protocol.Ticket
}

// movable reports whether p can move state to whoever has the seat. It assumes
// so of an owner that this leader has not heard yet.
func (m *Machine) movable(p *peer, to *seat) bool {
	if p.mover == "" || to == nil || to.gone || !to.incumbent.member() {
		return false
	}
	return to.incumbent.mover != "" || to.incumbent.echo == 0
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
	return m.movable(p, planned)
}

// startMoves begins as many of the moves that the plan asks for as may be under
// way at a time. Those of owners that want to go come first.
func (m *Machine) startMoves(now mono.Instant) {
	if len(m.backlog) == 0 {
		return
	}
	waiting := m.backlog[:0]
	for _, w := range m.backlog {
		from := m.sessions[w.from]
		switch {
		case from == nil || w.to.gone || !m.movable(from, w.to):
		case !m.stillWanted(w.Range, from, w.to) || m.moving(from, w.Range):
			m.again = true // a part of it is on its way: the rest is for later
		case len(from.out) >= m.cfg.Moves || len(w.to.incumbent.in) >= m.cfg.Moves || w.to.incumbent.echo == 0 || from.unsure(w.Range):
			// Nobody is asked to send what it may not have.
			waiting = append(waiting, w)
		default:
			m.start(now, from, w.to.incumbent, w.Range)
		}
	}
	clear(m.backlog[len(waiting):])
	m.backlog = waiting
}

// wanted is a move that the plan asks for.
type wanted struct {
	leasehold.Range
	from leasehold.Session
	to   *seat
}

// extend makes the move include the next row of the table, if it can.
func (w *wanted) extend(r leasehold.Range, from leasehold.Session, to *seat) bool {
	if w.from != from || w.to != to || w.Limit != r.Start {
		return false
	}
	w.Limit = r.Limit
	return true
}

// setBacklog takes what a scan has found, those who retire first.
func (m *Machine) setBacklog(all []wanted) {
	slices.SortStableFunc(all, func(a, b wanted) int { return cmp.Compare(m.rank(a), m.rank(b)) })
	m.backlog = all
}

func (m *Machine) rank(w wanted) int {
	if p := m.sessions[w.from]; p != nil && p.retires() {
		return 0
	}
	return 1
}

func (m *Machine) moving(p *peer, r leasehold.Range) bool {
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
	m.lookAgain()
}

// lookAgain compares the table with the plan once more, if something was left
// for later.
func (m *Machine) lookAgain() {
	m.rescan = m.rescan || m.again
	m.again = false
}

// fail ends a move that has come to nothing. The range stays where it is, until
// the policy is asked again; of an owner that wants to go it is tried again.
func (m *Machine) fail(now mono.Instant, mv *move, why Notable) {
	m.note(why, mv.from.holder.Owner, mv.report.Records, mv.report.Bytes)
	m.end(mv)
	if mv.from.retires() {
		m.retryMoves(now)
		return
	}
	if mv.from == mv.to {
		m.mendAt = now.Add(m.cfg.Timing.Renew)
		m.wakeAt(m.mendAt)
		return
	}
	if mv.from.member() && m.stillWanted(mv.Range, mv.from, mv.to.seat) {
		m.desired.Set(mv.Range, mv.from.seat)
		m.amended = true
	}
}

// retryMoves compares the table with the plan again, but not at once.
func (m *Machine) retryMoves(now mono.Instant) {
	m.rescanAt = min(m.rescanAt, now.Add(m.cfg.Timing.Renew))
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
		if !m.stillWanted(mv.Range, mv.from, mv.to.seat) || !m.movable(mv.from, mv.to.seat) {
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

// overdueMoves fails those that have made no progress for too long.
func (m *Machine) overdueMoves(now mono.Instant) {
	for _, mv := range slices.Clone(m.moves) {
		if now >= mv.deadline {
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
		if r != mv.report {
			mv.deadline = now.Add(m.cfg.MoveTimeout)
			m.wakeAt(mv.deadline)
		}
		mv.report = r
		switch r.State {
		case protocol.MoveFailed:
			m.fail(now, mv, NoteMoveFailed)
		case protocol.MoveDone:
			m.end(mv)
		case protocol.MoveCopying, protocol.MoveStopped:
		}
	}
}

// target returns the peer that state was sent to; nil if it is gone. Of one that
// had nothing before, a new leader may not have heard yet: it is taken for alive
// for as long as those that the table names.
func (m *Machine) target(now mono.Instant, h *table.Holder) *peer {
	p := m.sessions[h.Session]
	if p != nil && !p.proven && p.seat != nil && p.seat.incumbent == p && now < m.inheritUntil {
		// It has said hello. That it hears us it need not prove: our predecessor
		// has had its word.
		p.proven = true
		p.until = max(p.until, m.inheritUntil)
		m.replan = true
	}
	if p != nil || now >= m.inheritUntil {
		return p
	}
	if i, known := m.findSeat(h.Owner); known && m.seats[i].incumbent != nil {
		return nil // a later process has its name
	}
	p = &peer{holder: h, until: m.inheritUntil, proven: true, resendAt: mono.Never, seat: m.seat(h.Owner)}
	p.seat.incumbent = p
	m.sessions[h.Session] = p
	m.inherited++
	m.wakeAt(p.until)
	m.replan = true
	return p
}

// handedOver cuts a lease that p has let go of into what was handed over to
// another owner and what is lost.
func (m *Machine) handedOver(now mono.Instant, p *peer, f freed, reports []protocol.MoveReport) []freed {
	parts := []freed{f}
	for i := range reports {
		rep := &reports[i]
		if rep.State != protocol.MoveDone || !rep.Range.Overlaps(f.Range) {
			continue
		}
		to := m.target(now, rep.To)
		if to == nil || !to.member() {
			m.note(NoteTargetGone, p.holder.Owner, 0, 0)
			continue
		}
		parts = mark(parts, rep.Range, &transfer{to, rep.Ticket})
	}
	return parts
}

// mark says of what lies in r that its state is elsewhere.
func mark(parts []freed, r leasehold.Range, moved *transfer) []freed {
	var out []freed
	for _, f := range parts {
		in, overlaps := f.Range.Intersect(r)
		if !overlaps || f.moved != nil {
			out = append(out, f)
			continue
		}
		piece := func(r leasehold.Range, moved *transfer) {
			part := f
			part.Range, part.moved = r, moved
			out = append(out, part)
		}
		if in.Start > f.Range.Start {
			piece(leasehold.Range{Start: f.Range.Start, Limit: in.Start}, nil)
		}
		piece(in, moved)
		if in.Limit != f.Range.Limit {
			piece(leasehold.Range{Start: in.Limit, Limit: f.Range.Limit}, nil)
		}
	}
	return out
}

// release frees leases that p has let go of: what it has handed over goes to its
// target with the state; the rest is lost.
func (m *Machine) release(now mono.Instant, p *peer, given []freed, reports []protocol.MoveReport) {
	for _, whole := range given {
		for _, f := range m.handedOver(now, p, whole, reports) {
			switch {
			case f.moved != nil:
				m.note(NoteMoved, p.holder.Owner, uint64(f.Generation), 0)
				p.handed = append(p.handed, protocol.Departure{Ticket: f.moved.ticket, Range: f.Range, To: f.moved.to.holder, Mover: f.moved.to.mover})
			case f.cause == leasehold.CauseRefused:
				m.note(NoteRefused, p.holder.Owner, uint64(f.Generation), 0)
			case f.cause == leasehold.CauseReleased:
				m.note(NoteReleased, p.holder.Owner, uint64(f.Generation), 0)
			}
			m.free(f)
		}
	}
}

// arrived returns the ticket of a lease that the table gives to p, although p has
// never held it, if p has the state: our predecessor recorded that it had moved,
// and did not live to say so. It has if p's newest import of the range began
// before the lease was granted, and nothing was lost there since: for the table
// to name p without a loss, the state must have come to it last.
func (m *Machine) arrived(p *peer, l leasehold.Lease, imports []protocol.Import) (protocol.Ticket, bool) {
	for _, in := range slices.Backward(imports) {
		if !in.Range.Covers(l.Range) {
			continue
		}
		for _, e := range m.table.Within(l.Range) {
			if e.Generation != l.Generation || e.Generation <= in.Since.Newest || e.Lost > in.Since.LSN {
				return protocol.Ticket{}, false
			}
		}
		return in.Ticket, true
	}
	return protocol.Ticket{}, false
}

// joins reports whether f and next, which follows it, went under one ticket.
func (f *freed) joins(next *freed) bool {
	return f.moved != nil && next.moved != nil && f.moved.ticket == next.moved.ticket && f.Range.Limit == next.Range.Start && next.Range.Start != 0
}

// arrives reports whether a lease goes to where its state is. If that owner is
// gone by now, the state is lost after all.
func (m *Machine) arrives(f *freed) bool {
	if f.moved == nil {
		return false
	}
	to := f.moved.to
	return m.sessions[to.holder.Session] == to && to.member()
}

// recordedMove lets a source know, in what it is told next, that the table has
// what it handed over.
func (m *Machine) recordedMove(f *freed) {
	if p := m.sessions[f.holder.Session]; p != nil && f.moved != nil {
		p.handed = slices.DeleteFunc(p.handed, func(d protocol.Departure) bool { return d.Ticket == f.moved.ticket })
		m.ordered(p)
	}
}

// transfer is the change by which leases that lie side by side, and went under
// one ticket, go to where their state is, as one.
func (m *Machine) transfer(row []freed) table.Change {
	generation := m.table.Newest() + leasehold.Generation(len(m.batchTickets)) + 1
	m.batchTickets[generation] = row[0].moved.ticket
	r := leasehold.Range{Start: row[0].Range.Start, Limit: row[len(row)-1].Range.Limit}
	return table.Change{Kind: table.Moved, Range: r, Generation: generation, Holder: row[0].moved.to.holder, From: row[0].holder}
}

// departures and arrivals are what p is told about moves. What it has handed
// over is among them until the table says so: for as long it repeats that it
// has, and should we not live to record it, it will tell our successor.
func (p *peer) departures() []protocol.Departure {
	out := slices.Clone(p.handed)
	for _, mv := range p.out {
		out = append(out, protocol.Departure{Ticket: mv.ticket, Range: mv.Range, To: mv.to.holder, Mover: mv.to.mover})
	}
	return out
}

func (p *peer) arrivals() []protocol.Arrival {
	var out []protocol.Arrival
	for _, mv := range p.in {
		out = append(out, protocol.Arrival{Ticket: mv.ticket, Range: mv.Range, From: mv.from.holder, Since: mv.since})
	}
	return out
}

// noticeIdle remembers to tell those who wait for it that there is nothing left
// to wait for.
func (m *Machine) noticeIdle() {
	m.parting = slices.DeleteFunc(m.parting, func(p *peer) bool { return m.sessions[p.holder.Session] != p })
	for _, p := range m.parting {
		if !p.idleSaid && m.idle(p) {
			m.ordered(p)
		}
	}
}

// claimed reports whether a source may yet say that it has let go of what went
// under the ticket.
func (m *Machine) claimed(t protocol.Ticket) bool {
	for _, p := range m.sessions {
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
// still wait for.
func (m *Machine) idle(p *peer) bool {
	if !p.parting || m.replan || m.rescan || len(p.out)+len(p.in)+len(p.handed) > 0 {
		return false
	}
	for i := range p.imports {
		if m.claimed(p.imports[i].Ticket) {
			return false
		}
	}
	for _, l := range p.leases {
		for _, s := range m.desired.Within(l.Range) {
			if s != nil {
				return false
			}
		}
	}
	return true
}
