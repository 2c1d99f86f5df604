package owner

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// part asks for everything to be moved away, if that is possible at all.
func (m *Machine) part(now mono.Instant) {
	if m.exit.part != notParting || m.exit.leave != notLeaving {
		return
	}
	m.exit.part = parting
	if m.cfg.Mover == "" || len(m.held.leases)+len(m.moves.arrivals) == 0 {
		m.partNow()
		return
	}
	m.renewal.speak(now)
}

func (m *Machine) partNow() {
	m.exit.part = parted
	m.emit(Parted{})
}

// leave lets go of everything, and begins to say goodbye.
func (m *Machine) leave(now mono.Instant) {
	if m.exit.leave != notLeaving {
		return
	}
	m.exit.leave = leaving
	m.clock.muteUntil = now // it has nothing to hide any more
	m.dropAll(leasehold.CauseLeft)
	m.renewal.nextSend = now
	m.renewal.awaiting = false
}

// goUnheard leaves without a goodbye, if nobody has said it for long enough.
func (m *Machine) goUnheard(now mono.Instant) {
	if m.exit.leaveBy != 0 && m.exit.leave != left && now >= m.exit.leaveBy {
		m.exit.leave = left
		m.emit(Left{Unheard: true})
	}
}
