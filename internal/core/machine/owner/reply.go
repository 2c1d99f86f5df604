package owner

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// reply handles a leader's message: first whether it counts, then what it says.
func (m *Machine) reply(now mono.Instant, r *protocol.LeaseReply) {
	// While a message is held back, those that come answer an older one. After a sleep
	// their time cannot be told.
	if m.exit.leave == left || m.Quarantined(now) || m.promises.open() || !m.relevant(now, r) {
		return
	}
	first := m.leader.applied == 0 // the leader waits for proof that we hear it
	m.leader.applied = r.Seq
	if m.renewal.awaiting {
		m.renewal.measure(now)
	}
	m.renewal.awaiting, m.leader.redirected = false, false
	m.renewal.misses = 0
	m.leader.setTiming(r.Timing)
	if m.refusedOutright(now, r) {
		return
	}
	m.renewal.nextSend = m.cfg.Beats.Last(m.renewal.sentAt.Add(m.jitter(m.leader.timing.Renew)), m.leader.timing.Renew)
	changed := m.adopt(now, r)
	if !m.Quarantined(now) && !r.Collecting {
		m.orders(now, r)
	}
	if changed || first || m.renewal.eager {
		m.renewal.nextSend = min(m.renewal.nextSend, now) // say at once what we have now
	}
}

// orders follows what the reply says about moving state.
func (m *Machine) orders(now mono.Instant, r *protocol.LeaseReply) {
	m.moves.contact = backing{r.Term, m.renewal.sentAt.Add(r.Timing.Lease)}
	m.moves.draining = r.Draining
	stopped := len(m.moves.stopped())
	m.depart(r.Departures)
	if len(m.moves.stopped()) != stopped {
		m.publish(m.held.leases, m.held.view.Until) // what was cancelled is served again
	}
	m.arrive(now, r.Arrivals)
	if m.exit.part != parting || !r.Idle {
		return
	}
	if slices.ContainsFunc(m.moves.arrivals, func(a *arrival) bool { return a.confirmed && !a.said }) {
		m.renewal.eager = true // the leader does not know of it, and the source counts on us
		return
	}
	m.partNow()
}

// relevant applies the protocol's filter. It remembers the number of a message
// that it drops for a race, so that our next one reflects it.
func (m *Machine) relevant(now mono.Instant, r *protocol.LeaseReply) bool {
	if r.Validate(m.cfg.Limits) != nil {
		m.note(NoteBadMessage, uint64(r.Term), uint64(r.Seq))
		return false
	}
	if r.Namespace != m.cfg.Namespace || r.Session != m.cfg.Holder.Session {
		m.note(NoteForeign, uint64(r.Term), uint64(r.Seq))
		return false
	}
	if r.Term < m.leader.term {
		m.note(NoteStaleTerm, uint64(r.Term), uint64(m.leader.term))
		return false
	}
	if r.Term > m.leader.term {
		m.note(NoteNewTerm, uint64(r.Term), uint64(m.leader.term))
		m.leader.term, m.leader.heard, m.leader.applied = r.Term, 0, 0
		m.clock.rate = rateGuard{}
	}
	if r.Seq <= m.leader.heard {
		m.note(NoteDuplicate, uint64(r.Seq), uint64(m.leader.heard))
		return false
	}
	m.leader.heard = r.Seq
	m.leader.id = r.Leader
	if r.Goodbye && m.exit.leave != notLeaving {
		return true // whichever of our goodbyes it answers
	}
	if r.Echo != m.renewal.seq {
		m.note(NoteRace, uint64(r.Echo), uint64(m.renewal.seq))
		m.speakSoon(now)
		return false
	}
	return true
}

// refusedOutright handles replies that confer no leases at all.
func (m *Machine) refusedOutright(now mono.Instant, r *protocol.LeaseReply) bool {
	switch {
	case r.Goodbye:
		if m.exit.leave == notLeaving {
			return false
		}
		m.exit.leave = left
		m.emit(Left{})
		return true
	case r.Refusal != leasehold.Other:
		m.note(NoteServerRefuse, uint64(r.Refusal), 0)
	case r.Incumbent != nil:
		m.note(NoteNameTaken, 0, 0)
		if r.Incumbent.Session != m.predecessor.asked {
			m.predecessor.asked = r.Incumbent.Session
			m.emit(FindPredecessor{r.Incumbent})
		}
	default:
		if r.Contender != nil {
			m.note(NoteContender, 0, 0)
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

// adopt makes our leases what the reply offers, as far as we may, and reports
// whether the leader should hear about the result at once.
func (m *Machine) adopt(now mono.Instant, r *protocol.LeaseReply) bool {
	until := m.renewal.sentAt.Add(r.Timing.Lease)
	if now >= until {
		m.note(NoteLate, uint64(now), uint64(until))
		return len(r.Offers) > 0
	}
	if !m.clock.rate.acceptable(now, m.renewal.sentAt, r) {
		m.note(NoteClockSlow, uint64(r.Clock-m.clock.rate.from.clock), uint64(now-m.clock.rate.from.sent))
		m.quarantine(now)
		return false
	}
	if m.exit.leave != notLeaving {
		return false
	}
	switch {
	case m.held.suspended && !m.renewal.claimed:
		// The leader has renewed what was valid when we sent our request. What it would make of
		// a suspended claim we do not know yet.
		m.note(NoteLate, uint64(now), uint64(m.held.view.Until))
		return true
	case m.held.suspended && r.Collecting:
		// A leader without a table does not know whether another owner has had the ranges.
		m.note(NoteNotResumed, uint64(len(m.held.leases)), 0)
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

// exchange installs the offers in place of what we hold.
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
		case whole: // we have it: fresh or not, it goes on
		case !o.Fresh:
			m.note(NoteRefused, uint64(o.Generation), 0)
			refused = true
		case o.Generation <= m.held.newest && o.Ticket.IsZero(): // a ticket is good for one time
			m.note(NoteOldGrant, uint64(o.Generation), uint64(m.held.newest))
			refused = true
		case !o.Ticket.IsZero() && !m.welcome(&o):
			m.note(NoteNoState, uint64(o.Generation), 0)
			refused = true
		case !o.Ticket.IsZero():
			next = append(next[:kept], o.Lease) // the application is told when it has the state
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
		cause = leasehold.CauseExpired // a leader resumes before it recalls: they had ended for it
	}
	m.publish(next, until)
	if m.held.suspended && len(revoked) > 0 {
		m.note(NoteNotResumed, uint64(len(revoked)), 0)
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

// A merger walks sorted leases once, while offers are compared with them in
// order.
type merger struct {
	held []leasehold.Lease
}

// appendHeld appends the parts of l that are held under its generation. Held
// parts that touch become one.
func (w *merger) appendHeld(to []leasehold.Lease, l leasehold.Lease) []leasehold.Lease {
	for len(w.held) > 0 && w.held[0].Range.Last() < l.Range.Start {
		w.held = w.held[1:] // no later offer can reach it
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
