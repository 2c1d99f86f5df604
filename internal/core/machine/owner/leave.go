package owner

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// part starts parting. It ends at once if the owner cannot move state or has none.
func (m *Machine) part(now mono.Instant) {
	if m.exit.part != notParting || m.exit.leave != notLeaving {
		return
	}
	m.exit.part = parting
	if m.cfg.Mover == "" || len(m.held.leases)+len(m.moves.arrivals) == 0 {
		m.finishParting()
		return
	}
	m.renewal.sendSoon(now)
}

func (m *Machine) finishParting() {
	m.exit.part = parted
	m.emit(Parted{})
}

// leave drops all leases and starts to leave.
func (m *Machine) leave(now mono.Instant) {
	if m.exit.leave != notLeaving {
		return
	}
	m.exit.leave = leaving
	m.clock.quarantineEnd = now // without leases the clock does not matter
	m.dropAll(leasehold.CauseLeft)
	m.renewal.nextSend = now
	m.renewal.awaiting = false
}

// leaveUnacknowledged ends the session if no leader has acknowledged before the timeout.
func (m *Machine) leaveUnacknowledged(now mono.Instant) {
	if m.exit.leaveBy != 0 && m.exit.leave != left && now >= m.exit.leaveBy {
		m.exit.leave = left
		m.emit(Left{Unacknowledged: true})
	}
}
