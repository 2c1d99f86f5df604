package manager

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/partition"
)

// Limits of how far an owner's term may be ahead of the leader's. In a store, terms increase by one, or by the
// number of seconds for which the store may have lost terms: an owner that is centuries ahead is faulty, and must
// not exhaust the terms. Without a store, terms are milliseconds, and an owner is ahead if the managers' wall
// clocks were set back; more than about a day is rejected.
const (
	maxTermJump         = 1 << 33
	maxVolatileTermJump = 1 << 27
)

func (c *Config) termJump() leasehold.Term {
	if c.Volatile {
		return maxVolatileTermJump
	}
	return maxTermJump
}

// request validates an owner's request, then applies it and replies.
func (m *Machine) request(now mono.Instant, r *protocol.LeaseRequest) {
	switch {
	case r.Validate(m.cfg.Limits) != nil:
		m.emit(Note{What: NoteBadMessage, Term: r.Term, Seq: r.Seq})
		return
	case r.Namespace != m.cfg.Namespace:
		m.emit(Note{What: NoteForeign, Owner: r.Holder.Owner})
		return
	case r.Term > m.lead.term+m.cfg.termJump():
		m.emit(Note{What: NoteBadMessage, Owner: r.Holder.Owner, Term: r.Term, Seq: r.Seq})
		return
	case r.Term > m.lead.term:
		m.emit(Outranked{r.Term}) // only the store can confirm this
		return
	case r.Term == m.lead.term && r.Heard > m.lead.seq:
		// This leader has sent no such message: the store has lost the record of an earlier leader in this term,
		// and a new term is required.
		m.emit(Outranked{m.lead.term + 1})
		return
	case !m.lead.active(now):
		m.emit(Note{What: NoteNoAuthority, Owner: r.Holder.Owner})
		return
	case m.members.foreignSession(r.Holder):
		m.emit(Note{What: NoteForeign, Owner: r.Holder.Owner})
		return
	case m.deaths.late(r.Holder):
		m.emit(Note{What: NoteLate, Owner: r.Holder.Owner, Seq: r.Seq})
		m.refuse(now, r, leasehold.ErrClosed)
		return
	case m.history.gap == gapUrgent:
		return // its claims may be the only evidence that the store was restored
	case m.duplicated(now, r):
		return
	case r.Leaving:
		m.goodbye(now, r)
		return
	case m.members.sessions[r.Holder.Session] == nil && m.ending(r.Holder.Session):
		return // its leases have ended, which is not committed yet: a reply would reveal it
	}
	m.endOutage(now, r.Holder.Session)
	if first := m.members.contenderFor(r.Holder); first != nil && !m.supersedes(r, first) {
		reply := m.reply(now, r.Holder.Session, r.Seq)
		reply.Incumbent = first.holder
		m.emit(Send{r.Holder.Owner, reply})
		return
	}
	p, refusal := m.session(now, r.Holder)
	if p == nil {
		m.refuse(now, r, refusal)
		return
	}
	if m.accept(now, p, r) {
		m.seatGhost(p)
		m.applyRequest(now, p, r)
		p.renewal.lastRequest, p.load, p.claims.suspended, p.renewal.due = now, r.Load, r.Suspended, 0
		p.renewal.until = max(p.renewal.until, now.Add(m.patience(p)))
		m.wakeAt(p.renewal.until)
		m.resume(p)
		if p.claims.undefer(); m.history.defers(now, p) {
			p.claims.resumption = resumeDeferred
		}
		if !p.claims.deferred() && m.history.gap != gapUrgent {
			m.sendLeases(now, p)
		}
	}
}

// supersedes reports whether a request proves that the contender is gone, and removes that. If it has leases, they
// must expire first.
func (m *Machine) supersedes(r *protocol.LeaseRequest, first *peer) bool {
	if r.Gone != first.holder.Session || len(first.held.leases) > 0 {
		return false
	}
	m.detach(first)
	return true
}

// session returns the peer of a holder, and creates one if there is none, or returns the reason for a refusal.
func (m *Machine) session(now mono.Instant, h *table.Holder) (*peer, leasehold.Kind) {
	if p := m.members.sessions[h.Session]; p != nil {
		return p, leasehold.Other
	}
	if m.members.connected >= m.cfg.MaxOwners && !m.makeRoom(now) {
		m.emit(Note{What: NoteFull, Owner: h.Owner, Owners: m.members.connected})
		return nil, leasehold.ErrLimit
	}
	p := newPeer(h)
	p.seat = m.members.seat(h.Owner)
	m.members.sessions[h.Session] = p
	if p.seat.incumbent == nil {
		p.seat.incumbent = p
		m.emit(Note{What: NoteHello, Owner: h.Owner})
		return p, leasehold.Other
	}
	p.seat.contender = p
	m.emit(Note{What: NoteNameTaken, Owner: h.Owner})
	return p, leasehold.Other
}

// seatGhost gives a ghost that has sent a request its seat, or the place of the contender, if that is free.
func (m *Machine) seatGhost(p *peer) {
	if p.seat != nil {
		return
	}
	s := m.members.seat(p.holder.Owner)
	switch {
	case s.incumbent == nil:
		s.incumbent = p
		m.plan.replan = true
	case s.contender == nil:
		s.contender = p
	default:
		return
	}
	p.seat = s
}

// accept applies the protocol's filter. The first request of a session in this term is always accepted, because
// there is no message to acknowledge; but it proves nothing either (see applyRequest).
func (m *Machine) accept(now mono.Instant, p *peer, r *protocol.LeaseRequest) bool {
	if r.Seq <= p.acks.echo {
		m.emit(Note{What: NoteDuplicate, Owner: p.holder.Owner, Seq: r.Seq, NewestSeq: p.acks.echo})
		return false
	}
	if p.acks.sent != 0 && (r.Term != m.lead.term || r.Heard != p.acks.sent) {
		m.emit(Note{What: NoteRace, Owner: p.holder.Owner, Seq: r.Heard, NewestSeq: p.acks.sent})
		p.acks.resendAt = min(p.acks.resendAt, now.Add(m.backoff()))
		m.wakeAt(p.acks.resendAt)
		return false
	}
	if p.acks.echo == 0 {
		m.members.connected++
	}
	p.verifyBy(r.Holder)
	p.acks.echo = r.Seq
	p.acks.resendAt = mono.Never
	return true
}

// patience is how long a peer may be silent after a request. A peer that waits for its name, or has not
// acknowledged a message, has no leases. It must not block the name for long: it may be gone, or its request may be
// a stale message of a former session.
func (m *Machine) patience(p *peer) time.Duration {
	waits := p.seat != nil && p.seat.contender == p && len(p.held.leases) == 0
	if p.acks.proven && !waits {
		return m.cfg.Timing.Hold()
	}
	return m.cfg.Timing.Drift.Stretch(2 * m.cfg.Timing.Renew)
}

// applyRequest applies an accepted request.
func (m *Machine) applyRequest(now mono.Instant, p *peer, r *protocol.LeaseRequest) {
	if p.acks.sent == 0 { // later leases and resumptions are this leader's
		p.claims.resumedUpTo = r.Resumed
		m.detectLostHistory(now, r)
	}
	p.claims.leases = r.Leases
	m.applyAttributes(now, p, r)
	if s := p.seat; s != nil && s.contender == p && !r.Gone.IsZero() && r.Gone == s.incumbent.holder.Session {
		m.emit(Note{What: NotePredecessor, Owner: s.owner, Leases: len(s.incumbent.held.leases)})
		m.remove(s.incumbent, leasehold.CauseRestarted)
	}
	if p.acks.sent == 0 {
		if n := len(p.held.leases); n > 0 && p.renewal.lastRequest == 0 && !(r.Suspended && m.history.undecided()) {
			m.emit(Note{What: NoteTakeoverRenews, Owner: p.holder.Owner, Leases: n})
		}
		// It has not received a message of this leader. A message of the last leader that is still in flight may
		// give it the leases that it lacks.
		return
	}
	p.acks.unacked = false
	p.claims.valid = p.claims.valid || !r.Suspended
	if !p.acks.proven {
		p.acks.proven = true
		if p.seat != nil && p.seat.contender == p {
			m.wake = now // the incumbent may be overdue
		}
		if p.member() {
			m.emit(Note{What: NoteJoined, Owner: p.holder.Owner})
			m.compareMovers(p)
			m.joined(now)
		}
	}
	p.moves.ackEnds(r.Applied)
	m.reported(now, p, r.Moves)
	p.claims.stage = max(p.claims.stage, claimsExact)
	if m.history.undecided() {
		return
	}
	p.claims.stage = claimsReconciled
	m.reconcile(now, p, r)
	m.moves.markReady(p)
}

// applyAttributes stores the attributes of a peer: its mover, its moves, its loads, and whether it retires.
func (m *Machine) applyAttributes(now mono.Instant, p *peer, r *protocol.LeaseRequest) {
	first := p.acks.sent == 0
	p.moves.identity = r.Identity
	if p.moves.mover != r.Mover {
		p.moves.mover, p.held.plain = r.Mover, false
		// A range to be recalled may be moved instead, or the reverse.
		m.plan.rescan = m.plan.rescan || !first || !m.plan.keepsAllAsPlanned(p)
	}
	if first && r.Mover == "" && len(p.moves.blocked) > 0 {
		m.plan.rescan = true // it was assumed to move state
	}
	if first {
		m.moves.unblock(p)
	}
	p.moves.reports, p.moves.imports = r.Moves, r.Imports
	if r.Loads != nil && partition.UsesLoads(m.cfg.Policy) {
		p.loads = r.Loads
		m.plan.churn.loadsReported(now, m.cfg.Rebalance)
		m.wakeAt(m.plan.churn.next)
	}
	if first && r.Draining && !p.exit.draining { // ordered under the last leader
		p.exit.draining = true
		m.retire(p)
	}
	if r.Parting && !p.exit.parting() {
		p.exit.stage = parting
		m.members.parting = append(m.members.parting, p)
		m.emit(Note{What: NoteParting, Owner: p.holder.Owner, Leases: len(p.held.leases)})
		m.retire(p)
	}
}

// retire schedules a plan without a peer, or with it again.
func (m *Machine) retire(p *peer) {
	m.ordered(p)
	if p.member() {
		m.plan.lostMember(reasonFor(p.seat, table.Joined))
	}
}

// reconcile compares the leases that the peer should have with those that it claims: it confirms grants and frees
// leases that the peer lacks.
func (m *Machine) reconcile(now mono.Instant, p *peer, r *protocol.LeaseRequest) {
	gone := protocol.Missing(p.held.leases, r.Leases)
	if len(gone) == 0 && len(p.held.fresh) == 0 {
		p.moves.awaiting = nil
		return
	}
	var given []freed
	pending := map[leasehold.Generation]protocol.Seq{}
	reports := m.history.credible(p, r.Moves)
	m.awaitTargets(now, p, reports)
	for _, l := range p.moves.withoutAwaited(gone) {
		first, fresh := p.held.fresh[l.Generation]
		neverHad := fresh && (first == 0 || first > r.Applied)
		_, moved := p.held.tickets[l.Generation]
		// A peer that has the state of a lease, and not the lease, gets it again: the lease is from an earlier
		// leader, or its reply came too late.
		inherited := !fresh && (!m.history.proven || l.Generation > m.history.found.generation)
		if ticket, here := m.state.arrived(p, l, r.Imports); here && (moved || inherited) {
			p.held.expect(l.Generation, ticket)
			pending[l.Generation] = 0
			m.emit(Note{What: NoteGrantPending, Owner: p.holder.Owner, Generation: l.Generation})
			continue
		}
		for part, s := range m.plan.desired.Within(l.Range) {
			if neverHad && (s == p.seat || moved) {
				m.emit(Note{What: NoteGrantPending, Owner: p.holder.Owner, Generation: l.Generation})
				pending[l.Generation] = first
				continue
			}
			lease := leasehold.Lease{Range: part, Generation: l.Generation}
			given = append(given, freed{Lease: lease, holder: p.holder, cause: m.causeOf(p, lease, s)})
		}
	}
	m.confirm(p, pending)
	p.held.drop(leasesOf(given))
	m.pruneMoves(p)
	m.release(now, p, given, reports)
}

// confirm stores the grants that are still unconfirmed. A lease that went to a peer only because its state was
// there may be moved on now.
func (m *Machine) confirm(p *peer, pending map[leasehold.Generation]protocol.Seq) {
	if len(pending) == 0 && len(p.held.fresh) > 0 {
		m.compaction.notBefore = 0 // its leases may be mergeable now
	}
	p.held.fresh = pending
	m.confirmMoves(p, pending)
	for g := range p.held.tickets {
		if _, still := pending[g]; !still {
			delete(p.held.tickets, g)
			p.held.plain = false
			m.plan.rescan = m.plan.rescan || !m.plan.planned(p, g)
		}
	}
}

func leasesOf(all []freed) []leasehold.Lease {
	out := make([]leasehold.Lease, len(all))
	for i := range all {
		out[i] = all[i].Lease
	}
	return out
}

// causeOf distinguishes a lease that was recalled from one that the holder did not have.
func (m *Machine) causeOf(p *peer, l leasehold.Lease, wanted *seat) leasehold.Cause {
	if wanted != p.seat || p.held.recalled[l] {
		return leasehold.CauseReleased
	}
	return leasehold.CauseRefused
}

// goodbye ends a session that accepts no further lease, whatever message arrives later: so its request need not
// acknowledge the newest message.
func (m *Machine) goodbye(now mono.Instant, r *protocol.LeaseRequest) {
	if p := m.members.sessions[r.Holder.Session]; p != nil {
		reports := m.history.credible(p, r.Moves)
		if m.awaitTargets(now, p, reports); len(p.moves.awaiting) > 0 {
			return // the owner repeats the request: its state may be with a target that returns
		}
		m.emit(Note{What: NoteLeft, Owner: r.Holder.Owner, Leases: len(p.held.leases)})
		m.releaseHandedOver(now, p, reports, leasehold.CauseLeft)
		m.remove(p, leasehold.CauseLeft)
	}
	if len(m.freed.goodbyes) < m.cfg.MaxOwners {
		m.freed.goodbyes = append(m.freed.goodbyes, goodbye{r.Holder.Owner, r.Holder.Session, r.Seq, m.freed.total})
	}
}

// releaseHandedOver releases the ranges of completed moves, each as a whole.
func (m *Machine) releaseHandedOver(now mono.Instant, p *peer, reports []protocol.MoveReport, cause leasehold.Cause) {
	for _, rep := range reports {
		if rep.State != protocol.MoveDone {
			continue
		}
		var given []freed
		for _, l := range p.held.leases {
			if part, ok := l.Range.Intersect(rep.Range); ok {
				given = append(given, freed{Lease: leasehold.Lease{Range: part, Generation: l.Generation}, holder: p.holder, cause: cause})
			}
		}
		p.held.drop(leasesOf(given))
		m.release(now, p, given, reports)
	}
}

// A goodbye is the final reply to a session that has left. It is sent after the end of the session's leases is
// recorded: otherwise, after a failure of this leader, its successor would wait for leases that no owner holds.
type goodbye struct {
	owner   leasehold.OwnerID
	session leasehold.Session
	echo    protocol.Seq
	due     uint64 // required value of freedLeases.recorded
}

func (m *Machine) sendGoodbyes(now mono.Instant) {
	n := 0
	for ; n < len(m.freed.goodbyes) && m.freed.goodbyes[n].due <= m.freed.recorded && !m.moves.awaitsConfirmation(m.freed.goodbyes[n].session); n++ {
		reply := m.reply(now, m.freed.goodbyes[n].session, m.freed.goodbyes[n].echo)
		reply.Goodbye = true
		m.emit(Send{m.freed.goodbyes[n].owner, reply})
	}
	if m.freed.goodbyes = slices.Delete(m.freed.goodbyes, 0, n); len(m.freed.goodbyes) == 0 {
		m.freed.goodbyes = nil
	}
}

// refuse refuses an owner that cannot be served, and stores nothing about it.
func (m *Machine) refuse(now mono.Instant, r *protocol.LeaseRequest, why leasehold.Kind) {
	reply := m.reply(now, r.Holder.Session, r.Seq)
	reply.Refusal = why
	m.emit(Send{r.Holder.Owner, reply})
}

// reply returns a message to a session, with the next sequence number.
func (m *Machine) reply(now mono.Instant, s leasehold.Session, echo protocol.Seq) *protocol.LeaseReply {
	m.lead.seq++
	return &protocol.LeaseReply{
		Namespace: m.cfg.Namespace, Session: s, Leader: m.cfg.Self, Term: m.lead.term,
		Seq: m.lead.seq, Echo: echo, Timing: m.cfg.Timing, Clock: now,
	}
}

// sendLeases sends a peer the complete set of leases that it is to have.
func (m *Machine) sendLeases(now mono.Instant, p *peer) {
	if p.claims.deferred() {
		return
	}
	reply := m.reply(now, p.holder.Session, p.acks.echo)
	p.acks.sent = m.lead.seq
	p.acks.stale = false
	s := p.seat
	switch {
	case s == nil || s.incumbent != p:
		if s != nil {
			reply.Incumbent = s.incumbent.holder
		}
	default:
		if s.contender != nil {
			reply.Contender = s.contender.holder
		}
		reply.Offers = m.offersTo(p)
		// An undecided leader gives no orders, and the owner must conclude nothing from that: moves of leaders
		// before it are not over. It sends no acknowledgement before its next renewal.
		if reply.Collecting = m.history.undecided() && !p.claims.suspended; reply.Collecting {
			break
		}
		p.moves.orders = false
		p.acks.unacked = p.acks.unacked || !m.plan.keepsAsIs(p)
		reply.Departures, reply.Arrivals = p.departures(), p.moves.arrivals()
		reply.Draining, reply.Idle = p.exit.draining, m.idle(now, p)
		p.exit.recordIdle(reply.Idle)
		m.recordSentEnds(p)
	}
	for _, o := range reply.Offers {
		if first, fresh := p.held.fresh[o.Generation]; fresh && first == 0 {
			p.held.fresh[o.Generation] = m.lead.seq
		}
	}
	m.emit(Send{p.holder.Owner, reply})
}

// offersTo returns the peer's leases that the plan leaves to it.
func (m *Machine) offersTo(p *peer) []protocol.Offer {
	leases := p.moves.withoutAwaited(p.held.leases)
	if len(leases) == 0 {
		return nil
	}
	offers := make([]protocol.Offer, 0, len(leases))
	if m.history.undecided() {
		for _, l := range protocol.Missing(leases, protocol.Missing(leases, p.claims.leases)) {
			offers = append(offers, protocol.Offer{Lease: l}) // leases that it lacks are not offered now
		}
		return offers
	}
	if m.plan.keepsAsIs(p) {
		for _, l := range leases {
			offers = append(offers, protocol.Offer{Lease: l})
		}
		return offers
	}
	for _, l := range leases {
		_, fresh := p.held.fresh[l.Generation]
		ticket, moved := p.held.tickets[l.Generation]
		if p.claims.suspended && !fresh && !moved && !m.history.proven {
			offers = append(offers, protocol.Offer{Lease: l}) // it is resumed first, and recalled after that
			continue
		}
		if p.held.recalled[l] {
			continue
		}
		if moved {
			// Its state is there: it gets all of the lease, whatever the plan is now.
			offers = append(offers, protocol.Offer{Lease: l, Fresh: true, Ticket: ticket})
			continue
		}
		from := len(offers)
		for r, s := range m.plan.desired.Within(l.Range) {
			if !p.stays(s) {
				continue
			}
			if n := len(offers); n > from && offers[n-1].Range.Limit == r.Start {
				offers[n-1].Range.Limit = r.Limit
				continue
			}
			offers = append(offers, protocol.Offer{Lease: leasehold.Lease{Range: r, Generation: l.Generation}, Fresh: fresh})
		}
	}
	return offers
}
