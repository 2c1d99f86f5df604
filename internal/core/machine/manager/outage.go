package manager

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// A silent owner expires so that other owners can take its ranges. If no other owner can, expiry gains nothing, and
// loses the state that a live owner keeps while its leases are suspended. This is the case when all owners are
// silent at once: most likely the managers, the store or the network have failed, and not every server.
//
// So if no other member could take the ranges, the leader keeps silent owners in the table past their deadlines.
// When an owner sends a request again, the others get one lease time to return, as after a takeover; after that,
// silent owners expire as usual. An owner whose name another session requests does not get that time: its process
// was replaced.

// An outage is a period in which no owner is in contact, and owners past their deadlines are kept because no other
// owner could take their ranges.
type outage struct {
	active      bool
	lastContact mono.Instant // last request of any owner
	returnedAt  mono.Instant // last request of a session that existed before
	// returnUntil is when the time to return after the last outage ends.
	returnUntil mono.Instant
}

// retainSilent reports whether silent owners stay in the table at now, because no other member can take their
// ranges. A member that is leaving cannot, and one that has missed two renewals does not count. Owners that are cut
// off together reach their deadlines at different times: the first must not expire because the last has time left.
func (m *Machine) retainSilent(now mono.Instant) bool {
	return !m.cfg.Deleted && !slices.ContainsFunc(m.members.seats, func(s *seat) bool {
		p := s.incumbent
		return p != nil && p.member() && !p.exit.parting() && p.acks.echo != 0 && p.renewal.lastRequest >= m.recently(now)
	})
}

// recently returns the instant since which every owner that is not cut off has sent a request.
func (m *Machine) recently(now mono.Instant) mono.Instant {
	return now.Add(-m.cfg.Timing.Drift.Stretch(2 * m.cfg.Timing.Renew))
}

// replaced reports whether the incumbent of a seat expires even if silent owners are kept: it holds nothing, or
// another session requests its name. That session must have acknowledged a message of this leader: its first
// request may be stale, and its process gone. An owner without leases is kept if it may have the only copy of a
// range that its source has released: it can move state, and has acknowledged a message or reported imports.
func (s *seat) replaced(now mono.Instant) bool {
	p := s.incumbent
	switch {
	case p == nil:
		return false
	case s.contender != nil && s.contender.claims.exact():
		return p.renewal.silent(now)
	}
	moves := p.moves.mover != "" && (p.claims.exact() || len(p.moves.imports)+len(p.moves.arriving) > 0)
	return now >= p.renewal.until && len(p.held.leases) == 0 && !moves
}

// expireSilent ends all sessions past their deadlines.
func (m *Machine) expireSilent(now mono.Instant) {
	for _, s := range slices.Clone(m.members.seats) {
		if p := s.incumbent; p != nil && now >= p.renewal.until {
			m.expireIncumbent(s)
		}
	}
	for _, p := range m.members.ghosts() {
		if now >= p.renewal.until {
			m.remove(p, leasehold.CauseExpired)
		}
	}
}

func (m *Machine) expireIncumbent(s *seat) {
	m.emit(Note{What: NoteExpired, Owner: s.owner, Leases: len(s.incumbent.held.leases)})
	m.remove(s.incumbent, leasehold.CauseExpired)
}

// detectOutage records whether owners are kept past their deadlines. It is an outage if no owner is in contact.
// Otherwise the check repeats soon, since another owner may become a member.
func (m *Machine) detectOutage(now mono.Instant) {
	kept := 0
	for _, p := range m.members.sessions {
		if now >= p.renewal.until {
			kept++
		}
	}
	silence := kept > 0 && m.outage.lastContact < m.recently(now)
	if silence && !m.outage.active {
		m.emit(Note{What: NoteOutage, Owners: kept})
	}
	m.outage.active = silence
	if kept > 0 && !silence {
		m.wakeAt(now.Add(m.cfg.Timing.Renew / 2))
	}
}

// makeRoom reports whether another session can be added. Silent owners that are kept past their deadlines, or have
// more time to return, do not count: otherwise they would lock out the owners that could take their ranges. They
// may return, so there can be twice MaxOwners sessions. Beyond that a silent session expires: one without leases if
// there is any, and among those the one with the oldest request. The cost is a pass over all sessions; after a
// refusal, further sessions are refused without one for a while.
func (m *Machine) makeRoom(now mono.Instant) bool {
	if now < m.members.fullUntil {
		return false
	}
	kept, first := 0, (*peer)(nil)
	for _, p := range m.members.sessions {
		if p.acks.echo == 0 || !p.renewal.silent(now) {
			continue
		}
		if kept++; first == nil || p.expiresBefore(first) {
			first = p
		}
	}
	if m.members.connected-kept >= m.cfg.MaxOwners {
		m.members.fullUntil = now.Add(m.cfg.Timing.Renew / 8)
		return false
	}
	if m.members.connected >= 2*m.cfg.MaxOwners {
		m.emit(Note{What: NoteExpired, Owner: first.holder.Owner, Leases: len(first.held.leases)})
		m.remove(first, leasehold.CauseExpired)
	}
	return true
}

// expiresBefore reports whether a silent session expires before another, if there are too many.
func (p *peer) expiresBefore(o *peer) bool {
	if has, other := len(p.held.leases) > 0, len(o.held.leases) > 0; has != other {
		return other
	}
	return cmp.Or(cmp.Compare(p.renewal.lastRequest, o.renewal.lastRequest), bytes.Compare(p.holder.Session[:], o.holder.Session[:])) < 0
}

// endOutage gives the silent owners one lease time to return, when one of them returns after a period without
// requests: they were cut off as well, whether or not their deadlines have passed. A new owner is no such evidence,
// unless deadlines have passed. A session that requests the name of a silent owner need not wait for that.
func (m *Machine) endOutage(now mono.Instant, s leasehold.Session) {
	recently, over := m.recently(now), m.outage.active
	m.outage.lastContact, m.outage.active = now, false
	if p := m.members.sessions[s]; p != nil {
		over = over || p.renewal.lastRequest < recently && max(m.outage.returnedAt, m.history.since) < recently
		m.outage.returnedAt = now
	}
	if !over {
		return
	}
	m.emit(Note{What: NoteOutageOver})
	until := now.Add(m.cfg.Timing.Hold())
	m.outage.returnUntil = until
	for _, p := range m.members.sessions {
		if p.renewal.lastRequest >= recently || p.renewal.until >= until {
			continue
		}
		if p.renewal.due == 0 {
			p.renewal.due = p.renewal.until
		}
		p.renewal.until = until
	}
	m.wake = now
}

// extend extends the authority. Without authority no requests were accepted: that time does not count towards the
// owners' deadlines.
func (m *Machine) extend(now, until mono.Instant) {
	if from := max(m.lead.authority, m.lead.creditedUntil); now > from {
		for _, p := range m.members.sessions {
			if p.renewal.until > from {
				p.renewal.until = max(p.renewal.until, min(p.renewal.until.Add(now.Sub(from)), now.Add(m.patience(p))))
			}
		}
		m.lead.creditedUntil = now
	}
	m.lead.authority = max(m.lead.authority, until)
	m.wake = now // process everything that waited for authority
}

// wakeAtDeadline schedules a wake-up at a peer's deadline, unless it is kept past it.
func (m *Machine) wakeAtDeadline(now mono.Instant, p *peer) {
	if now < p.renewal.until {
		m.wakeAt(p.renewal.until)
	}
	if now < p.renewal.due {
		m.wakeAt(p.renewal.due)
	}
}

// ending reports whether a session has ended leases that the table does not record as ended yet.
func (m *Machine) ending(s leasehold.Session) bool {
	of := func(f freed) bool { return f.holder.Session == s }
	return slices.ContainsFunc(m.freed.queue, of) || slices.ContainsFunc(m.pending.freed, of)
}
