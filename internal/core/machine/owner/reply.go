package owner

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// reply handles a reply of a leader.
func (m *Machine) reply(now mono.Instant, r *protocol.LeaseReply) {
	// While promises hold back a request, replies belong to an older one. After a sleep the time
	// of that one is unknown.
	if m.exit.leave == left || m.Quarantined(now) || m.promises.open() || !m.relevant(now, r) {
		return
	}
	first := m.leader.applied == 0 // the leader waits for an acknowledgement of its first reply
	m.leader.applied = r.Seq
	if m.renewal.awaiting {
		m.renewal.measure(now)
	}
	m.renewal.awaiting, m.leader.redirected = false, false
	m.renewal.misses = 0
	m.leader.setTiming(r.Timing)
	if m.handleRefusal(now, r) {
		return
	}
	if m.renewal.acks == r.Term && !m.leader.joined && m.exit.leave == notLeaving {
		m.leader.joined = true
		m.emit(Joined{r.Term})
	}
	m.renewal.nextSend = m.cfg.Beats.Last(m.renewal.sentAt.Add(m.jitter(m.leader.timing.Renew)), m.leader.timing.Renew)
	changed := m.adopt(now, r)
	switch {
	case m.Quarantined(now):
	case r.Collecting:
		m.keepCollected(now)
	default:
		m.applyMoves(now, r)
	}
	if changed || first || m.renewal.sendOnReply {
		m.renewal.nextSend = min(m.renewal.nextSend, now) // report the result at once
	}
}

// applyMoves applies the orders of a reply about moves.
func (m *Machine) applyMoves(now mono.Instant, r *protocol.LeaseReply) {
	m.moves.contact = backing{r.Term, m.renewal.sentAt.Add(r.Timing.Lease)}
	m.moves.draining = r.Draining
	stopped := len(m.moves.stopped())
	m.updateDepartures(r.Departures)
	if len(m.moves.stopped()) != stopped {
		m.publish(m.held.leases, m.held.view.Until) // ranges of cancelled moves are served again
	}
	m.updateArrivals(now, r.Arrivals)
	if m.exit.part != parting || !r.Idle {
		return
	}
	if slices.ContainsFunc(m.moves.arrivals, func(a *arrival) bool { return a.confirmed && !a.reported }) {
		m.renewal.sendOnReply = true // it must be reported first: it may be the only copy
		return
	}
	m.finishParting()
}

// relevant reports whether a reply is valid, of the newest term, in order, and to the newest request.
// It records the sequence number of a reply that it drops as a race, so that the next request
// acknowledges it.
func (m *Machine) relevant(now mono.Instant, r *protocol.LeaseReply) bool {
	if r.Validate(m.cfg.Limits) != nil {
		m.emit(Note{What: NoteBadMessage, Term: r.Term, Seq: r.Seq})
		return false
	}
	if r.Namespace != m.cfg.Namespace || r.Session != m.cfg.Holder.Session {
		m.emit(Note{What: NoteForeign, Term: r.Term, Seq: r.Seq})
		return false
	}
	if r.Term < m.leader.term {
		m.emit(Note{What: NoteStaleTerm, Term: r.Term, OwnTerm: m.leader.term})
		return false
	}
	if r.Term > m.leader.term {
		m.emit(Note{What: NoteNewTerm, Term: r.Term, OwnTerm: m.leader.term})
		m.leader.term, m.leader.received, m.leader.applied = r.Term, 0, 0
		m.clock.rate = rateGuard{}
	}
	if r.Seq <= m.leader.received {
		m.emit(Note{What: NoteDuplicate, Seq: r.Seq, NewestSeq: m.leader.received})
		return false
	}
	m.leader.received = r.Seq
	m.leader.id = r.Leader
	if r.Goodbye && m.exit.leave != notLeaving {
		return true // it may answer any of the requests with Leaving
	}
	if r.Echo != m.renewal.seq {
		m.emit(Note{What: NoteRace, Seq: r.Echo, NewestSeq: m.renewal.seq})
		m.sendAfterBackoff(now)
		return false
	}
	return true
}

// handleRefusal handles replies without leases: an acknowledged leave, a refusal, a name that is taken.
func (m *Machine) handleRefusal(now mono.Instant, r *protocol.LeaseReply) bool {
	switch {
	case r.Goodbye:
		if m.exit.leave == notLeaving {
			return false
		}
		m.exit.leave = left
		m.emit(Left{})
		return true
	case r.Refusal != leasehold.Other:
		m.emit(Note{What: NoteServerRefuse, Kind: r.Refusal})
	case r.Incumbent != nil:
		m.emit(Note{What: NoteNameTaken})
		m.leader.joined = false
		if r.Incumbent.Session != m.predecessor.asked {
			m.predecessor.asked = r.Incumbent.Session
			m.emit(FindPredecessor{r.Incumbent})
		}
	default:
		if r.Contender != nil {
			m.emit(Note{What: NoteContender})
		}
		return false
	}
	m.dropAll(leasehold.CauseReleased)
	m.renewal.nextSend = m.renewal.sentAt.Add(m.jitter(m.leader.timing.Renew))
	if m.renewal.nextSend < now {
		m.renewal.nextSend = now
	}
	return true
}

// adopt applies the leases in the reply. It reports whether the owner sends the result to the
// leader at once.
func (m *Machine) adopt(now mono.Instant, r *protocol.LeaseReply) bool {
	until := m.renewal.sentAt.Add(r.Timing.Lease)
	if now >= until {
		m.emit(Note{What: NoteLate, Late: now.Sub(until)})
		return len(r.Offers) > 0
	}
	if !m.clock.rate.acceptable(now, m.renewal.sentAt, r) {
		m.emit(Note{What: NoteClockSlow, Elapsed: now.Sub(m.clock.rate.from.sent), LeaderElapsed: r.Clock.Sub(m.clock.rate.from.clock)})
		m.quarantine(now)
		return false
	}
	if m.exit.leave != notLeaving {
		return false
	}
	switch {
	case m.held.suspended && !m.renewal.claimsSuspended:
		// The request was sent before the suspension, so the leader does not know of it. Only the reply
		// to a suspended claim resumes leases.
		m.emit(Note{What: NoteLate, Late: now.Sub(m.held.view.Until)})
		return true
	case m.held.suspended && r.Collecting:
		// A leader without a table cannot exclude that another owner has held the ranges.
		m.emit(Note{What: NoteNotResumed, Leases: len(m.held.leases)})
		m.dropAll(leasehold.CauseExpired)
		return true
	}
	if m.held.unchanged(r.Offers) {
		if until != m.held.view.Until {
			m.publish(m.held.leases, until)
		}
		m.resume(m.held.leases)
		return false
	}
	return m.exchange(r.Offers, until)
}

// exchange replaces the held leases by the offers that the owner accepts. It reports whether the leader needs the result.
func (m *Machine) exchange(offers []protocol.Offer, until mono.Instant) bool {
	held := m.held.leases
	walk := merger{held}
	next := make([]leasehold.Lease, 0, len(offers))
	var granted []leasehold.Lease
	refused, newest := false, m.held.newest
	for _, o := range offers {
		kept := len(next)
		next = walk.appendHeld(next, o.Lease)
		whole := len(next) == kept+1 && next[kept].Range == o.Range
		switch {
		case whole: // held as a whole, fresh or not
		case !o.Fresh:
			m.emit(Note{What: NoteRefused, Generation: o.Generation})
			refused = true
		case o.Generation <= m.held.newest && o.Ticket.IsZero(): // a ticket is accepted once
			m.emit(Note{What: NoteOldGrant, Generation: o.Generation, NewestGeneration: m.held.newest})
			refused = true
		case !o.Ticket.IsZero() && !m.acceptMoved(&o):
			m.emit(Note{What: NoteNoState, Generation: o.Generation})
			refused = true
		case !o.Ticket.IsZero():
			next = append(next[:kept], o.Lease) // GrantedLeases follows when the state is installed
			newest = max(newest, o.Generation)
		default:
			next = append(next[:kept], o.Lease)
			granted = append(granted, o.Lease)
			m.supersede(o.Range)
			newest = max(newest, o.Generation)
		}
	}
	m.held.newest = newest
	revoked, cause := protocol.Missing(held, next), leasehold.CauseReleased
	if m.held.suspended {
		cause = leasehold.CauseExpired // a leader resumes before it recalls, so it had ended these leases
	}
	m.publish(next, until)
	if m.held.suspended && len(revoked) > 0 {
		m.emit(Note{What: NoteNotResumed, Leases: len(revoked)})
	}
	if len(revoked) > 0 {
		m.emit(RevokedLeases{revoked, cause})
	}
	m.resume(protocol.Missing(held, revoked))
	if len(granted) > 0 {
		m.emit(GrantedLeases{granted})
	}
	return refused || len(revoked) > 0 || len(granted) > 0 || anyFresh(offers)
}

func anyFresh(offers []protocol.Offer) bool {
	for i := range offers {
		if offers[i].Fresh {
			return true
		}
	}
	return false
}

// A merger iterates once over sorted leases, while sorted offers are compared with them.
type merger struct {
	held []leasehold.Lease
}

// appendHeld appends the parts of l that are held under its generation. Adjacent parts are
// merged.
func (w *merger) appendHeld(to []leasehold.Lease, l leasehold.Lease) []leasehold.Lease {
	for len(w.held) > 0 && w.held[0].Range.Last() < l.Range.Start {
		w.held = w.held[1:] // it ends before all later offers
	}
	from := len(to)
	for _, h := range w.held {
		part, ok := h.Range.Intersect(l.Range)
		if !ok {
			break
		}
		if h.Generation != l.Generation {
			continue
		}
		if n := len(to); n > from && to[n-1].Range.Limit == part.Start {
			to[n-1].Range.Limit = part.Limit
			continue
		}
		to = append(to, leasehold.Lease{Range: part, Generation: l.Generation})
	}
	return to
}
