package owner

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// A lease that reaches its deadline without an answer is suspended. The problem: after an
// outage of the managers every owner's leases have expired, although no owner has failed
// and no other owner has acted on their keys. To drop them would erase the memory of the
// whole service.
//
// So checks fail from the deadline on, as before, and everything else is kept: the leases,
// their generations, and the application's state. The owner goes on claiming them in its
// requests, marked as suspended. The leader's table decides: while it assigns a range to
// this session and generation, no other owner can have had it, and the leader renews it. A
// renewal makes the lease valid again under the same generation. What the reply omits has
// ended.
//
// Why this is safe: only the answer to a request that was sent as suspended resumes anything,
// so that the leader knows what it renews. Validity counts from the sending of that request, so
// the leader still outlasts it. Held of a lease that was checked before the suspension is true
// after it, because the same generation in the table means that no other owner acted.
//
// A process that has slept, or whose clock is too slow, does not suspend but drops its
// leases: its memory may be older than what its session has confirmed.

// suspend stops serving the leases whose deadline has passed, and drops them when they have
// been kept for long enough.
func (m *Machine) suspend(now mono.Instant) {
	switch {
	case len(m.held.leases) == 0 || now < m.held.view.Until:
	case !m.held.suspended:
		m.held.suspended = true
		m.note(NoteSuspended, uint64(len(m.held.leases)), 0)
		m.emit(SuspendedLeases{m.held.leases})
	case m.cfg.KeepSuspended > 0 && now >= m.discardAt():
		m.note(NoteKeptTooLong, uint64(len(m.held.leases)), 0)
		m.dropAll(leasehold.CauseExpired)
	}
}

// discardAt is when suspended leases are dropped.
func (m *Machine) discardAt() mono.Instant { return m.held.view.Until.Add(m.cfg.KeepSuspended) }

// resume ends a suspension: the leader has renewed these of the suspended leases.
func (m *Machine) resume(renewed []leasehold.Lease) {
	if !m.held.suspended {
		return
	}
	m.held.suspended = false
	for _, l := range renewed {
		m.held.resumedUpTo = max(m.held.resumedUpTo, l.Generation)
	}
	if len(renewed) > 0 {
		m.note(NoteResumed, uint64(len(renewed)), 0)
		m.emit(ResumedLeases{renewed})
	}
}

// Suspended reports whether the held leases have reached their deadline and wait for a
// leader's answer.
func (m *Machine) Suspended() bool { return m.held.suspended }

// keepArrivals keeps confirmed state while no leader answers: its source may have let go of
// the range, and then this is the only copy.
func (m *Machine) keepArrivals(now mono.Instant) {
	for _, a := range m.moves.arrivals {
		if !a.confirmed || a.lease.Generation != 0 {
			continue
		}
		a.until = mono.Never
		if m.cfg.KeepSuspended > 0 {
			a.until = now.Add(m.cfg.KeepSuspended)
		}
	}
}
