package owner

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// A departure is the source side of a move: a range whose state goes to another owner. The owner
// holds its leases until the target has confirmed. After that it never serves them again,
// whatever the leader decides.
type departure struct {
	protocol.Departure
	leases []leasehold.Lease // of the range, when the move started
	state  protocol.MoveState
	// begun: StartMove was emitted. A move waits while the state of its range is still being
	// installed here.
	begun    bool
	reported bool // in the newest request, with how it ended
	// contactLost: contact was lost when or after the lease was released, and the leader may have
	// expired this owner.
	contactLost bool
}

// newest returns the highest generation of the leases at the start.
func (d *departure) newest() leasehold.Generation {
	var g leasehold.Generation
	for _, l := range d.leases {
		g = max(g, l.Generation)
	}
	return g
}

// ended reports whether only the report to the leader is left.
func (d *departure) ended() bool {
	return d.state == protocol.MoveDone || d.state == protocol.MoveFailed
}

// updateDepartures starts and cancels departures so that they match the leader's orders.
func (m *Machine) updateDepartures(wanted []protocol.Departure) {
	m.moves.departures = slices.DeleteFunc(m.moves.departures, func(d *departure) bool {
		if slices.ContainsFunc(wanted, func(w protocol.Departure) bool { return w.Ticket == d.Ticket }) {
			return false // it continues, or the leader has not recorded its end yet
		}
		if d.ended() {
			return d.reported // the leader has recorded or ignored it
		}
		m.emit(Note{What: NoteMoveCancelled, MoveState: d.state})
		m.emit(EndMove{d.Ticket})
		return true
	})
	for _, w := range wanted {
		known := slices.ContainsFunc(m.moves.departures, func(d *departure) bool { return d.Ticket == w.Ticket })
		if known || len(m.moves.departures) >= protocol.MaxMoves {
			continue
		}
		d := &departure{Departure: w, leases: part(m.held.leases, w.Range), state: protocol.MoveCopying}
		if m.cfg.Mover == "" || w.Mover == "" || m.exit.leave != notLeaving || !covers(d.leases, w.Range) || m.moves.departs(w.Range) {
			m.emit(Note{What: NoteMoveImpossible})
			d.state = protocol.MoveFailed
			m.renewal.sendOnReply = true
		}
		m.moves.departures = append(m.moves.departures, d)
	}
	m.startDepartures()
}

// startDepartures starts the departures whose leases are all served.
func (m *Machine) startDepartures() {
	for _, d := range m.moves.departures {
		if d.ended() || d.begun || len(protocol.Missing(d.leases, m.held.view.Leases)) > 0 {
			continue
		}
		d.begun = true
		m.emit(StartMove{d.Departure})
	}
}

// departure returns the departure with the ticket if it has not ended, and otherwise emits EndMove.
func (m *Machine) departure(t protocol.Ticket) *departure {
	for _, d := range m.moves.departures {
		if d.Ticket == t && !d.ended() {
			return d
		}
	}
	m.emit(EndMove{t})
	return nil
}

// copied stops serving a range. The shell sends the rest of the state after Stop.
func (m *Machine) copied(t protocol.Ticket) {
	d := m.departure(t)
	if d == nil || d.state != protocol.MoveCopying {
		return
	}
	d.state = protocol.MoveStopped
	m.publish(m.held.leases, m.held.view.Until)
	m.emit(Stop{t})
}

// confirmed releases the leases of a range whose state is at the target.
func (m *Machine) confirmed(now mono.Instant, t protocol.Ticket) {
	d := m.departure(t)
	if d == nil || d.state != protocol.MoveStopped {
		return
	}
	d.state, d.reported, d.contactLost = protocol.MoveDone, false, m.moves.contact.at(now) == 0
	m.publish(protocol.Missing(m.held.leases, d.leases), m.held.view.Until)
	m.emit(RevokedLeases{d.leases, leasehold.CauseMoved})
	m.emit(EndMove{t})
	m.renewal.sendSoon(now)
}

// gaveUp ends a failed move; its range is served again.
func (m *Machine) gaveUp(now mono.Instant, t protocol.Ticket) {
	d := m.departure(t)
	if d == nil {
		return
	}
	d.state, d.reported = protocol.MoveFailed, false
	m.emit(Note{What: NoteMoveFailed})
	m.publish(m.held.leases, m.held.view.Until)
	m.emit(EndMove{t})
	m.renewal.sendSoon(now)
}

// endDepartures ends departures whose leases have changed since the start.
func (m *Machine) endDepartures() {
	m.moves.departures = slices.DeleteFunc(m.moves.departures, func(d *departure) bool {
		if d.ended() || len(protocol.Missing(d.leases, m.held.leases)) == 0 {
			return false
		}
		m.emit(EndMove{d.Ticket})
		return true
	})
}

// part returns the parts of sorted leases that lie in r.
func part(leases []leasehold.Lease, r leasehold.Range) []leasehold.Lease {
	var out []leasehold.Lease
	for _, l := range leases {
		if in, ok := l.Range.Intersect(r); ok {
			out = append(out, leasehold.Lease{Range: in, Generation: l.Generation})
		}
	}
	return out
}

// covers reports whether sorted leases that lie in r leave no gap in it.
func covers(leases []leasehold.Lease, r leasehold.Range) bool {
	if len(leases) == 0 || leases[0].Range.Start != r.Start || leases[len(leases)-1].Range.Limit != r.Limit {
		return false
	}
	for i := 1; i < len(leases); i++ {
		if leases[i-1].Range.Limit != leases[i].Range.Start {
			return false
		}
	}
	return true
}
