package owner

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// A leader gives an owner up when it has not accepted a request of it for longer
// than a lease. By then the owner's own time has run out, which began when it
// sent that request. So an owner whose time has not run out can say that no
// leader has given it up, and a leader without a table to read relies on it when
// it hears of a move that its predecessor did not live to finish. A leader that
// only collects gives time for leases, but promises nothing about moves: its
// messages do not count here.

// backing is a leader that has given us time, and until when.
type backing struct {
	term  leasehold.Term
	until mono.Instant
}

// at returns whose time we have at now; 0 if there is none.
func (b backing) at(now mono.Instant) leasehold.Term {
	if now < b.until {
		return b.term
	}
	return 0
}

// loseContact forgets all time that we were given.
func (m *Machine) loseContact() {
	if n := m.moves.proven(); n > 0 {
		m.note(NoteUnproven, uint64(n), 0)
	}
	m.moves.contact = backing{}
	for _, d := range m.moves.departures {
		d.broken = true
	}
	for _, a := range m.moves.arrivals {
		a.backing = backing{}
	}
}
