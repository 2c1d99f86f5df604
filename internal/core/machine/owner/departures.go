package owner

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// A departure is a range whose state we send to another owner. We hold its
// leases until the target has confirmed. From then on we never serve them
// again, whatever the leader makes of it.
type departure struct {
	protocol.Departure
	leases []leasehold.Lease // what the range was when it began
	state  protocol.MoveState
	// begun: its state is being sent. It is not while it has yet to be put in
	// its place here.
	begun bool
	said  bool // our newest message says how it ended
	// broken: our time has run out since we let go, and the leader may have given
	// us up.
	broken bool
}

// newest is the highest generation of the leases that it began with.
func (d *departure) newest() leasehold.Generation {
	var g leasehold.Generation
	for _, l := range d.leases {
		g = max(g, l.Generation)
	}
	return g
}

// ended reports whether nothing is left to do but to let the leader know.
func (d *departure) ended() bool {
	return d.state == protocol.MoveDone || d.state == protocol.MoveFailed
}

// depart brings our departures in line with what the leader wants.
func (m *Machine) depart(wanted []protocol.Departure) {
	m.moves.departures = slices.DeleteFunc(m.moves.departures, func(d *departure) bool {
		if slices.ContainsFunc(wanted, func(w protocol.Departure) bool { return w.Ticket == d.Ticket }) {
			return false // it goes on, or the leader has not recorded yet how it ended
		}
		if d.ended() {
			return d.said // it is recorded, or the leader does not care
		}
		m.note(NoteMoveCancelled, uint64(d.state), 0)
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
			m.note(NoteMoveImpossible, 0, 0)
			d.state = protocol.MoveFailed
			m.renewal.eager = true
		}
		m.moves.departures = append(m.moves.departures, d)
	}
	m.startDepartures()
}

// startDepartures begins those whose state is in its place.
func (m *Machine) startDepartures() {
	for _, d := range m.moves.departures {
		if d.ended() || d.begun || len(protocol.Missing(d.leases, m.held.view.Leases)) > 0 {
			continue
		}
		d.begun = true
		m.emit(StartMove{d.Departure})
	}
}

// departure returns the one with the ticket that is still under way.
func (m *Machine) departure(t protocol.Ticket) *departure {
	for _, d := range m.moves.departures {
		if d.Ticket == t && !d.ended() {
			return d
		}
	}
	m.emit(EndMove{t})
	return nil
}

// copied stops serving a range. Whoever sends the rest does so after this.
func (m *Machine) copied(t protocol.Ticket) {
	d := m.departure(t)
	if d == nil || d.state != protocol.MoveCopying {
		return
	}
	d.state = protocol.MoveStopped
	m.publish(m.held.leases, m.held.view.Until)
	m.emit(Stop{t})
}

// confirmed lets go of a range whose state is with its target.
func (m *Machine) confirmed(now mono.Instant, t protocol.Ticket) {
	d := m.departure(t)
	if d == nil || d.state != protocol.MoveStopped {
		return
	}
	d.state, d.said, d.broken = protocol.MoveDone, false, m.moves.contact.at(now) == 0
	m.publish(protocol.Missing(m.held.leases, d.leases), m.held.view.Until)
	m.emit(RevokedLeases{d.leases, leasehold.CauseMoved})
	m.emit(EndMove{t})
	m.renewal.speak(now)
}

// gaveUp serves a range again whose state could not be sent.
func (m *Machine) gaveUp(now mono.Instant, t protocol.Ticket) {
	d := m.departure(t)
	if d == nil {
		return
	}
	d.state, d.said = protocol.MoveFailed, false
	m.note(NoteMoveFailed, 0, 0)
	m.publish(m.held.leases, m.held.view.Until)
	m.emit(EndMove{t})
	m.renewal.speak(now)
}

// prune ends departures of leases that we no longer have as they were.
func (m *Machine) prune() {
	m.moves.departures = slices.DeleteFunc(m.moves.departures, func(d *departure) bool {
		if d.ended() || len(protocol.Missing(d.leases, m.held.leases)) == 0 {
			return false
		}
		m.emit(EndMove{d.Ticket})
		return true
	})
}

// part returns what of sorted leases lies in r.
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
