package manager

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/mono"
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

// keepSilent reports whether silent owners stay in the table at now.
func (m *Machine) keepSilent(now mono.Instant) bool {
	return !m.cfg.Deleted && !slices.ContainsFunc(m.seats, func(s *seat) bool {
		p := s.incumbent
		return p != nil && p.member() && now < p.until && !p.parting
	})
}

// expired reports whether the time of whoever has a seat is over.
func (s *seat) expired(now mono.Instant, keep bool) bool {
	p := s.incumbent
	switch {
	case p == nil:
		return false
	case s.contender != nil:
		return now >= p.until || p.overdue
	}
	return now >= p.until && (!keep || len(p.leases) == 0)
}

// noticeOutage notes that owners are kept past their deadlines.
func (m *Machine) noticeOutage(now mono.Instant) {
	kept := 0
	for _, p := range m.sessions {
		if now >= p.until {
			kept++
		}
	}
	if kept > 0 && !m.outage {
		m.note(NoteOutage, "", uint64(kept), 0)
	}
	m.outage = kept > 0
}

// endOutage gives the silent owners the time of a lease to return, now that one is heard.
func (m *Machine) endOutage(now mono.Instant) {
	if !m.outage {
		return
	}
	m.outage = false
	m.note(NoteOutageOver, "", 0, 0)
	until := now.Add(m.cfg.Timing.Hold())
	for _, p := range m.sessions {
		if now >= p.until {
			p.until, p.overdue = until, true
			if p.seat != nil && p.seat.contender != nil {
				m.wake = 0 // a new session has its name: it is expired at once
			}
		}
	}
	m.wakeAt(until)
}

// wakeAtDeadline sets the alarm for a peer's deadline, unless it is kept past it.
func (m *Machine) wakeAtDeadline(now mono.Instant, p *peer) {
	if now < p.until {
		m.wakeAt(p.until)
	}
}

// ending reports whether leases of a session have ended, which the table does not say yet.
func (m *Machine) ending(s leasehold.Session) bool {
	of := func(f freed) bool { return f.holder.Session == s }
	return slices.ContainsFunc(m.freed, of) || slices.ContainsFunc(m.batchFreed, of)
}
