package owner

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// A lease that reaches its deadline without a reply is suspended.
//
// Problem: after an outage of the managers the leases of all owners have expired, although no owner has
// failed and no other owner has acted on their keys. If owners dropped them, the whole service would
// lose its state.
//
// Idea: checks fail after the deadline, but the owner keeps the leases, their generations and the
// application's state. Its requests claim these leases, marked as suspended. The leader's
// table decides: while it assigns a range to this session and generation, no other owner can have
// held it, and the leader renews it. The lease is then valid again under the same generation. Leases
// that the reply omits have ended.
//
// Safety: only the reply to a request with suspended claims resumes leases, so the leader has decided
// about them. Validity counts from the sending of that request, so the lease still ends
// at the owner before it ends at the leader. View.Held is true for a lease that was checked before the
// suspension, because an unchanged generation in the table means that no other owner has acted.
//
// A process that has slept, or whose clock is too slow, drops its leases instead: its state may be older
// than what its session has confirmed.

// suspend suspends the leases at their deadline, and drops them after KeepSuspended.
func (m *Machine) suspend(now mono.Instant) {
	switch {
	case len(m.held.leases) == 0 || now < m.held.view.Until:
	case !m.held.suspended:
		m.held.suspended = true
		m.emit(Note{What: NoteSuspended, Leases: len(m.held.leases)})
		m.emit(SuspendedLeases{m.held.leases})
	case m.cfg.KeepSuspended > 0 && now >= m.discardAt():
		m.emit(Note{What: NoteKeptTooLong, Leases: len(m.held.leases)})
		m.dropAll(leasehold.CauseExpired)
	}
}

// discardAt is when suspended leases are dropped.
func (m *Machine) discardAt() mono.Instant { return m.held.view.Until.Add(m.cfg.KeepSuspended) }

// resume ends a suspension after the leader has renewed some of the leases.
func (m *Machine) resume(renewed []leasehold.Lease) {
	if !m.held.suspended {
		return
	}
	m.held.suspended = false
	for _, l := range renewed {
		m.held.resumedUpTo = max(m.held.resumedUpTo, l.Generation)
	}
	if len(renewed) > 0 {
		m.emit(Note{What: NoteResumed, Leases: len(renewed)})
		m.emit(ResumedLeases{renewed})
	}
}

// Suspended reports whether the leases are suspended.
func (m *Machine) Suspended() bool { return m.held.suspended }

// keepArrivals keeps confirmed state while no leader replies: the source may have released the range,
// and then this is the only copy.
func (m *Machine) keepArrivals(now mono.Instant) {
	for _, a := range m.moves.arrivals {
		if !a.confirmed || a.lease.Generation != 0 {
			continue
		}
		until := a.until
		a.until = mono.Never
		if m.cfg.KeepSuspended > 0 {
			a.until = max(until, now.Add(m.cfg.KeepSuspended))
		}
	}
}

// keepCollected keeps confirmed state while a leader replies that gives no orders yet.
func (m *Machine) keepCollected(now mono.Instant) {
	for _, a := range m.moves.arrivals {
		if a.confirmed && a.lease.Generation == 0 && a.until != mono.Never {
			m.keepFrom(now, a)
		}
	}
}
