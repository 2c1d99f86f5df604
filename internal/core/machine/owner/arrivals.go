package owner

import (
	"cmp"
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// An arrival is a range whose state another owner sends us. Until the leader
// grants us the lease, with the ticket, it is of no use.
type arrival struct {
	protocol.Arrival
	confirmed bool // all of it is here, and the source may know it
	said      bool // our newest message says so
	// backing is the leader that last named it, and for how long that counts.
	backing backing
	// until is for how long we keep what we have confirmed although no leader
	// speaks of it: a new one will hear of it from the source. The time counts
	// from when the leader of term last named it, or first answered.
	until mono.Instant
	term  leasehold.Term
	// lease is what we were granted, while the application puts the state in its
	// place; it has no generation before that.
	lease leasehold.Lease
}

// arrive brings our arrivals in line with what the leader wants.
func (m *Machine) arrive(now mono.Instant, wanted []protocol.Arrival) {
	m.moves.arrivals = slices.DeleteFunc(m.moves.arrivals, func(a *arrival) bool {
		switch {
		case a.lease.Generation != 0:
			return false
		case slices.ContainsFunc(wanted, func(w protocol.Arrival) bool { return w.Ticket == a.Ticket }):
			a.backing = m.moves.contact
			if a.confirmed {
				m.keepFrom(now, a)
			}
			return false
		case a.confirmed:
			a.backing = backing{}
			if a.until == mono.Never || a.term != m.leader.term { // a leader answers again, or a new one, and does not want it
				m.keepFrom(now, a)
			}
			return false
		}
		m.emit(Discard{a.Ticket})
		return true
	})
	for _, w := range wanted {
		known := slices.ContainsFunc(m.moves.arrivals, func(a *arrival) bool { return a.Ticket == w.Ticket })
		if known || m.cfg.Mover == "" || m.exit.leave != notLeaving || len(m.moves.arrivals) >= protocol.MaxMoves {
			continue // a source that nobody lets in will give up
		}
		m.moves.arrivals = append(m.moves.arrivals, &arrival{Arrival: w, until: mono.Never, backing: m.moves.contact})
		m.emit(Expect{w})
	}
}

// keepFrom lets the time count from now, for the leader that answers now.
func (m *Machine) keepFrom(now mono.Instant, a *arrival) {
	a.until, a.term = now.Add(m.leader.keep()), m.leader.term
}

// forget discards what nobody has spoken of for long enough.
func (m *Machine) forget(now mono.Instant) {
	before := len(m.moves.arrivals)
	m.moves.arrivals = slices.DeleteFunc(m.moves.arrivals, func(a *arrival) bool {
		if now < a.until {
			return false
		}
		m.emit(Discard{a.Ticket})
		return true
	})
	if len(m.moves.arrivals) != before {
		m.publish(m.held.leases, m.held.view.Until) // it is not coming
	}
}

// imported confirms that all state is here, if it is still wanted.
func (m *Machine) imported(now mono.Instant, t protocol.Ticket) {
	a := m.moves.arrival(t)
	if a == nil {
		m.emit(Discard{t})
		return
	}
	if !a.confirmed {
		m.supersede(a.Range) // what came before for these keys is older
		a.confirmed = true
		m.keepFrom(now, a)
		if m.moves.contact.term == 0 {
			m.keepArrivals(now)
		}
		m.publish(m.held.leases, m.held.view.Until) // it is coming
	}
	m.emit(Confirm{t})
}

// welcome takes a lease whose state has been moved here, if that is so.
func (m *Machine) welcome(o *protocol.Offer) bool {
	a := m.moves.arrival(o.Ticket)
	if a == nil || !a.confirmed || a.lease.Generation != 0 || !a.Range.Covers(o.Range) {
		return false
	}
	a.lease = o.Lease
	a.until = mono.Never
	m.supersede(o.Range)
	m.emit(Install{a.Ticket, a.lease})
	return true
}

// supersede discards state for a range that we have been given another way:
// what did not come into use then must never be taken for the state of a later
// lease.
func (m *Machine) supersede(r leasehold.Range) {
	m.moves.arrivals = slices.DeleteFunc(m.moves.arrivals, func(a *arrival) bool {
		if !a.confirmed || a.lease.Generation != 0 || !a.Range.Overlaps(r) {
			return false
		}
		m.emit(Discard{a.Ticket})
		return true
	})
}

// discardImports discards all state that we have received and do not serve yet.
func (m *Machine) discardImports() {
	m.moves.arrivals = slices.DeleteFunc(m.moves.arrivals, func(a *arrival) bool {
		if a.confirmed {
			m.emit(Discard{a.Ticket})
		}
		return a.confirmed
	})
}

// installed serves a lease whose state is in its place, or lets go of it.
func (m *Machine) installed(now mono.Instant, e Installed) {
	a := m.moves.arrival(e.Ticket)
	if a == nil || a.lease.Generation == 0 {
		return // it has ended meanwhile
	}
	m.moves.arrivals = slices.DeleteFunc(m.moves.arrivals, func(other *arrival) bool { return other == a })
	if e.Failed {
		m.note(NoteImportFailed, uint64(a.lease.Generation), 0)
		revoked := m.held.remains(a)
		m.publish(protocol.Missing(m.held.leases, revoked), m.held.view.Until)
		m.emit(RevokedLeases{revoked, leasehold.CauseReleased})
		m.renewal.speak(now)
		return
	}
	m.publish(m.held.leases, m.held.view.Until)
	m.emit(GrantedLeases{m.held.remains(a)})
	m.startDepartures()
}

// lapse ends arrivals of whose lease we no longer have any part.
func (m *Machine) lapse() {
	m.moves.arrivals = slices.DeleteFunc(m.moves.arrivals, func(a *arrival) bool {
		if a.lease.Generation == 0 || len(m.held.remains(a)) > 0 {
			return false
		}
		m.emit(Discard{a.Ticket})
		return true
	})
}

// coming returns the ranges whose state is here and that are not served yet.
func (m *Machine) coming() []leasehold.Range {
	var out []leasehold.Range
	for _, a := range m.moves.arrivals {
		switch {
		case a.lease.Generation != 0:
			for _, l := range m.held.remains(a) {
				out = append(out, l.Range)
			}
		case a.confirmed:
			out = append(out, a.Range)
		}
	}
	return out
}

func sortLeases(leases []leasehold.Lease) {
	slices.SortFunc(leases, func(a, b leasehold.Lease) int { return cmp.Compare(a.Range.Start, b.Range.Start) })
}
