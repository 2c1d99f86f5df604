package manager

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// A silent owner is expired so that others can have its ranges. If there is no other, to
// expire it gains nothing, and costs the state that a living owner keeps while it is
// suspended. That is so when all owners are silent at once: most likely the managers, the
// store or the network has failed, and not every server.
//
// So a leader that could grant the ranges to no other member keeps silent owners in the
// table, past their deadlines. When an owner is heard again, the others get the time of a
// lease to return, as after a takeover; whoever is silent then is expired as usual. An owner
// whose name a new session wants does not get that time: its process was replaced.

// An outage is a time in which no owner is heard, and those whose time is over are kept, because no other
// could take their ranges.
type outage struct {
	active      bool
	lastContact mono.Instant // when an owner was last heard
	returnedAt  mono.Instant // when one was that we knew before
	// returnUntil is until when owners that were cut off by the last outage may return.
	returnUntil mono.Instant
}

// retainSilent reports whether silent owners stay in the table at now, because no other member can
// take their ranges. A member that leaves cannot, and one that has missed two renewals does not
// count. Owners that are cut off together reach their deadlines one after the other: the first
// must not be expired because the last has some time left.
func (m *Machine) retainSilent(now mono.Instant) bool {
	return !m.cfg.Deleted && !slices.ContainsFunc(m.members.seats, func(s *seat) bool {
		p := s.incumbent
		return p != nil && p.member() && !p.exit.parting() && p.acks.echo != 0 && p.renewal.lastRequest >= m.recently(now)
	})
}

// recently is since when an owner that is not cut off has been heard.
func (m *Machine) recently(now mono.Instant) mono.Instant {
	return now.Add(-m.cfg.Timing.Drift.Stretch(2 * m.cfg.Timing.Renew))
}

// replaced reports whether whoever has a seat is expired even if silent owners are kept: it
// holds nothing, or another session wants its name. That session must have answered a message of
// this leader: its first message may be late, and its process gone. An owner without leases is kept
// if it may have the only copy of a range that its source has let go of: it can move state, and
// has answered or has named imports.
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

// expireSilent ends all sessions whose time is over.
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

// detectOutage notes that owners are kept past their deadlines. It is an outage if no owner is
// loadsReported at all; otherwise they are looked at again soon, since another may become a member.
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

// makeRoom reports whether another session can be heard. Silent owners that are kept past their
// deadlines, or have got more time to return, do not count: otherwise they would keep out the
// owners that could take their ranges. They may return, so there can be twice as many sessions
// as usual. Beyond that a silent session is expired: one without leases if there is any, and of those
// the one that has been silent for longest. It costs a pass over all sessions; after a refusal, others
// are refused without one for a while.
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

// expiresBefore reports whether a silent session is expired before another, if there are too many.
func (p *peer) expiresBefore(o *peer) bool {
	if has, other := len(p.held.leases) > 0, len(o.held.leases) > 0; has != other {
		return other
	}
	return cmp.Or(cmp.Compare(p.renewal.lastRequest, o.renewal.lastRequest), bytes.Compare(p.holder.Session[:], o.holder.Session[:])) < 0
}

// endOutage gives the silent owners the time of a lease to return, when one of them returns
// after none was heard for a while: they were cut off as well, whether or not their deadlines
// have passed. A newcomer shows nothing of the kind, unless deadlines have passed. A new session
// that wants the name of one waits no longer for that.
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

// extend lets us lead for longer. While we had no authority we heard no owner: that time does
// not count as an owner's silence.
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
	m.wake = now // whatever waited for it
}

// wakeAtDeadline sets the alarm for a peer's deadline, unless it is kept past it.
func (m *Machine) wakeAtDeadline(now mono.Instant, p *peer) {
	if now < p.renewal.until {
		m.wakeAt(p.renewal.until)
	}
	if now < p.renewal.due {
		m.wakeAt(p.renewal.due)
	}
}

// ending reports whether leases of a session have ended, which the table does not say yet.
func (m *Machine) ending(s leasehold.Session) bool {
	of := func(f freed) bool { return f.holder.Session == s }
	return slices.ContainsFunc(m.freed.queue, of) || slices.ContainsFunc(m.pending.freed, of)
}
