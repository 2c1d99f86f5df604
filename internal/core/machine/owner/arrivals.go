package owner

import (
	"cmp"
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// An arrival is the target side of a move: a range whose state another owner sends. The state
// is used only after the leader has granted the lease with the ticket.
type arrival struct {
	protocol.Arrival
	confirmed bool // all state is here, and the source may have been informed
	reported  bool // in the newest request
	// backing is the leader that last ordered this move, and until when it backs it.
	backing backing
	// until is when confirmed state is discarded if no leader orders the move any more. A new leader
	// learns of the move from the source. The time counts from the last reply of the
	// leader of term that ordered it, or from its first reply.
	until mono.Instant
	term  leasehold.Term
	// lease is the granted lease while the application installs the state; its generation is 0
	// before the grant.
	lease leasehold.Lease
}

// updateArrivals starts and discards arrivals so that they match the leader's orders.
func (m *Machine) updateArrivals(now mono.Instant, wanted []protocol.Arrival) {
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
			if a.until == mono.Never || a.term != m.leader.term { // the first reply after an outage, or of a new leader
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
			continue // the source times out
		}
		m.moves.arrivals = append(m.moves.arrivals, &arrival{Arrival: w, until: mono.Never, backing: m.moves.contact})
		m.emit(Expect{w})
	}
}

// keepFrom restarts the time for which an arrival is kept, for the current leader.
func (m *Machine) keepFrom(now mono.Instant, a *arrival) {
	a.until, a.term = now.Add(m.leader.keep()), m.leader.term
}

// expireArrivals discards confirmed state that no leader has ordered for too long.
func (m *Machine) expireArrivals(now mono.Instant) {
	before := len(m.moves.arrivals)
	m.moves.arrivals = slices.DeleteFunc(m.moves.arrivals, func(a *arrival) bool {
		if now < a.until {
			return false
		}
		m.emit(Discard{a.Ticket})
		return true
	})
	if len(m.moves.arrivals) != before {
		m.publish(m.held.leases, m.held.view.Until) // without the range in Coming
	}
}

// imported confirms a completed import, or discards it if the move was cancelled.
func (m *Machine) imported(now mono.Instant, t protocol.Ticket) {
	a := m.moves.arrival(t)
	if a == nil {
		m.emit(Discard{t})
		return
	}
	if !a.confirmed {
		m.supersede(a.Range) // earlier imports of these keys are older
		a.confirmed = true
		m.keepFrom(now, a)
		if m.moves.contact.term == 0 {
			m.keepArrivals(now)
		}
		m.publish(m.held.leases, m.held.view.Until) // with the range in Coming
	}
	m.emit(Confirm{t})
}

// acceptMoved accepts the offer of a lease with a ticket if its state is here, and starts to install it.
func (m *Machine) acceptMoved(o *protocol.Offer) bool {
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

// supersede discards unused imports that overlap a range which the owner now has by other means:
// the state of an earlier move must never be used for a later lease.
func (m *Machine) supersede(r leasehold.Range) {
	m.moves.arrivals = slices.DeleteFunc(m.moves.arrivals, func(a *arrival) bool {
		if !a.confirmed || a.lease.Generation != 0 || !a.Range.Overlaps(r) {
			return false
		}
		m.emit(Discard{a.Ticket})
		return true
	})
}

// discardImports discards all confirmed state that is not served yet.
func (m *Machine) discardImports() {
	m.moves.arrivals = slices.DeleteFunc(m.moves.arrivals, func(a *arrival) bool {
		if a.confirmed {
			m.emit(Discard{a.Ticket})
		}
		return a.confirmed
	})
}

// installed serves a lease whose state is installed, or releases it if that has failed.
func (m *Machine) installed(now mono.Instant, e Installed) {
	a := m.moves.arrival(e.Ticket)
	if a == nil || a.lease.Generation == 0 {
		return // the lease has ended
	}
	m.moves.arrivals = slices.DeleteFunc(m.moves.arrivals, func(other *arrival) bool { return other == a })
	if e.Failed {
		m.emit(Note{What: NoteImportFailed, Generation: a.lease.Generation})
		revoked := m.held.remains(a)
		m.publish(protocol.Missing(m.held.leases, revoked), m.held.view.Until)
		m.emit(RevokedLeases{revoked, leasehold.CauseReleased})
		m.renewal.sendSoon(now)
		return
	}
	m.publish(m.held.leases, m.held.view.Until)
	m.emit(GrantedLeases{m.held.remains(a)})
	m.startDepartures()
}

// endArrivals discards arrivals whose granted lease has ended completely.
func (m *Machine) endArrivals() {
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
