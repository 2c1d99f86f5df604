package manager

import (
	"cmp"
	"maps"
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// The source of a completed move reports the range as released, and the target accepts the lease only if it has the
// state. So any leader can transfer the range, including one that did not order the move.

// A transfer is a completed move of a range's state to another owner.
type transfer struct {
	to     *peer
	ticket protocol.Ticket
}

// target returns the peer that state was sent to; nil if it is gone. A leader may not have received a message
// yet from a target that had no lease before. After a takeover, and after an outage, such a target counts as alive
// for as long as the owners that the table names.
func (m *Machine) target(now mono.Instant, h *table.Holder) *peer {
	p, until := m.members.sessions[h.Session], max(m.members.inheritUntil, m.outage.returnUntil)
	if m.deaths.proven[h.Session] != nil {
		return nil
	}
	if p != nil && !p.acks.proven && p.seat != nil && p.seat.incumbent == p && now < until {
		// It has sent its first request. It need not acknowledge a message first: it did so with an earlier
		// leader.
		p.acks.proven = true
		// Grants count from that request.
		p.renewal.until = max(p.renewal.until, until, p.renewal.lastRequest.Add(m.patience(p)))
		m.plan.replan = true
	}
	if p != nil || now >= until || len(m.members.sessions) >= m.cfg.MaxOwners+m.members.named {
		return p
	}
	if i, known := m.members.findSeat(h.Owner); known && m.members.seats[i].incumbent != nil {
		return nil // a later session has its owner name
	}
	p = newInheritedPeer(h.WithoutDeathHash(), until) // only its own requests announce the hash
	p.seat = m.members.seat(h.Owner)
	p.seat.incumbent = p
	m.members.sessions[h.Session] = p
	m.members.inherited++
	m.wakeAt(p.renewal.until)
	m.plan.replan = true
	return p
}

// unclear reports whether the target of a move may yet return, although an earlier session has its name: the leader
// before us may have ended that session, and not lived to record it. This leader has received nothing from the earlier session.
func (m *Machine) unclear(now mono.Instant, h *table.Holder) bool {
	i, known := m.members.findSeat(h.Owner)
	if !known || now >= max(m.members.inheritUntil, m.outage.returnUntil) {
		return false
	}
	p := m.members.seats[i].incumbent
	return p != nil && p.holder.Session != h.Session && p.acks.echo == 0
}

// awaitTargets remembers the moves from a peer whose target may yet return.
func (m *Machine) awaitTargets(now mono.Instant, p *peer, reports []protocol.MoveReport) {
	p.moves.awaiting = nil
	for i := range reports {
		if rep := &reports[i]; rep.State == protocol.MoveDone && m.unclear(now, rep.To) {
			p.moves.awaiting = append(p.moves.awaiting, *rep)
		}
	}
	slices.SortFunc(p.moves.awaiting, func(a, b protocol.MoveReport) int { return cmp.Compare(a.Range.Start, b.Range.Start) })
}

// withoutAwaited returns the parts of a peer's leases whose state did not go to a target that may return. The other
// parts stay in the table and are not offered.
func (v *peerMoves) withoutAwaited(leases []leasehold.Lease) []leasehold.Lease {
	if len(v.awaiting) == 0 {
		return leases
	}
	var parts []leasehold.Lease
	for _, l := range leases {
		for _, rep := range v.awaiting {
			if part, ok := l.Range.Intersect(rep.Range); ok && l.Generation <= rep.Newest {
				parts = append(parts, leasehold.Lease{Range: part, Generation: l.Generation})
			}
		}
	}
	return protocol.Missing(leases, parts)
}

// handedOver splits a lease that p has released into parts whose state moved to another owner, and parts whose
// state is lost.
func (m *Machine) handedOver(now mono.Instant, p *peer, f freed, reports []protocol.MoveReport) []freed {
	parts := []freed{f}
	for i := range reports {
		rep := &reports[i]
		if rep.State != protocol.MoveDone || f.Generation > rep.Newest || !unmarked(parts, rep.Range) {
			continue
		}
		to := m.target(now, rep.To)
		if to == nil || !to.member() {
			m.emit(Note{What: NoteTargetGone, Owner: p.holder.Owner})
			continue
		}
		parts = mark(parts, rep.Range, &transfer{to, rep.Ticket})
	}
	return parts
}

// unmarked reports whether r overlaps a part without a transfer.
func unmarked(parts []freed, r leasehold.Range) bool {
	return slices.ContainsFunc(parts, func(f freed) bool { return f.moved == nil && f.Range.Overlaps(r) })
}

// mark attaches a transfer to the parts of leases inside r.
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

// release frees leases that p has released: a range that was handed over goes to its target with the state; the
// state of the rest is lost.
func (m *Machine) release(now mono.Instant, p *peer, given []freed, reports []protocol.MoveReport) {
	for _, whole := range given {
		for _, f := range m.handedOver(now, p, whole, reports) {
			switch {
			case f.moved != nil:
				m.emit(Note{What: NoteMoved, Owner: p.holder.Owner, Generation: f.Generation})
				p.handOver(&f)
			case f.cause == leasehold.CauseRefused:
				m.emit(Note{What: NoteRefused, Owner: p.holder.Owner, Generation: f.Generation})
			case f.cause == leasehold.CauseReleased:
				m.emit(Note{What: NoteReleased, Owner: p.holder.Owner, Generation: f.Generation})
			}
			m.freed.add(f)
		}
	}
}

// handOver stores the departure and the arrival of a handed-over range until it is recorded.
func (p *peer) handOver(f *freed) {
	if slices.ContainsFunc(p.moves.handed, func(d protocol.Departure) bool { return d.Ticket == f.moved.ticket }) {
		return // one of several leases
	}
	to := f.moved.to
	p.moves.handed = append(p.moves.handed, protocol.Departure{Ticket: f.moved.ticket, Range: f.Range, To: to.holder})
	to.moves.arriving = append(to.moves.arriving, protocol.Arrival{Ticket: f.moved.ticket, Range: f.Range, From: p.holder})
}

// joins reports whether f and next, which follows it, moved under one ticket.
func (f *freed) joins(next *freed) bool {
	return f.moved != nil && next.moved != nil && f.moved.ticket == next.moved.ticket && f.holder == next.holder && f.Range.Limit == next.Range.Start && next.Range.Start != 0
}

// recordedMove acknowledges to a source, in its next message, that the table has the range that it handed over.
func (m *Machine) recordedMove(f *freed) {
	if f.moved == nil {
		return
	}
	to := f.moved.to
	to.moves.arriving = slices.DeleteFunc(to.moves.arriving, func(a protocol.Arrival) bool { return a.Ticket == f.moved.ticket })
	m.ordered(to)
	if m.cfg.Volatile && m.pending.carries(f.moved.ticket) {
		if m.moves.unconfirmed == nil {
			m.moves.unconfirmed = make(map[protocol.Ticket]leasehold.Session)
		}
		m.moves.unconfirmed[f.moved.ticket] = f.holder.Session
		return
	}
	m.ackMove(f.holder.Session, f.moved.ticket)
}

// ackMove lets a source stop reporting a move, with its next message.
func (m *Machine) ackMove(source leasehold.Session, t protocol.Ticket) {
	if p := m.members.sessions[source]; p != nil {
		p.moves.handed = slices.DeleteFunc(p.moves.handed, func(d protocol.Departure) bool { return d.Ticket == t })
		m.ordered(p)
	}
}

// confirmMoves confirms, in order, all moves to a peer but those of generations in pending.
func (m *Machine) confirmMoves(p *peer, pending map[leasehold.Generation]protocol.Seq) {
	for _, g := range slices.Sorted(maps.Keys(p.held.tickets)) {
		if _, still := pending[g]; !still {
			m.moveConfirmed(p.held.tickets[g])
		}
	}
}

// moveConfirmed ends a move: the target has the lease, has refused it, or is gone.
func (m *Machine) moveConfirmed(t protocol.Ticket) {
	if source, waits := m.moves.unconfirmed[t]; waits {
		delete(m.moves.unconfirmed, t)
		m.ackMove(source, t)
	}
}

// transfer returns the change that gives adjacent leases, moved under one ticket, to the target as one lease.
// changes is the number of changes before it in the batch.
func (m *Machine) transfer(row []freed, changes int) table.Change {
	generation := m.nextGeneration(len(m.pending.tickets), changes)
	m.pending.tickets[generation] = row[0].moved.ticket
	r := leasehold.Range{Start: row[0].Range.Start, Limit: row[len(row)-1].Range.Limit}
	return table.Change{
		Kind: table.Moved, Range: r, Generation: generation, Holder: row[0].moved.to.holder, From: row[0].holder,
		Reason: m.plan.reason(r, row[0].holder, row[0].moved.to.holder),
	}
}
