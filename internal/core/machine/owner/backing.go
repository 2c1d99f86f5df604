package owner

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// Problem: a diskless leader must decide about moves that its predecessor has not completed, without
// a table. It needs evidence that the predecessor had not expired the source or the target.
//
// Idea: a leader expires an owner when it has not accepted a request of it for longer than a
// lease. The owner's lease time counts from the sending of that request, so it ends
// earlier. An owner whose lease time has not ended reports the term of the leader that backs it.
//
// A leader in its census renews leases but has not decided about moves: its replies are no backing.

// backing is the term of a leader that has not expired this owner, and until when that is certain.
type backing struct {
	term  leasehold.Term
	until mono.Instant
}

// at returns the term of the leader that backs the owner at now; 0 if none does.
func (b backing) at(now mono.Instant) leasehold.Term {
	if now < b.until {
		return b.term
	}
	return 0
}

// loseContact clears all backing.
func (m *Machine) loseContact() {
	if n := m.moves.proven(); n > 0 {
		m.emit(Note{What: NoteUnproven, Moves: n})
	}
	m.moves.contact = backing{}
	for _, d := range m.moves.departures {
		d.contactLost = true
	}
	for _, a := range m.moves.arrivals {
		a.backing = backing{}
	}
}
