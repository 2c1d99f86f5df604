package owner

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// A State is the state of an owner.
type State uint8

// The states of an owner.
const (
	// StateJoined: Check succeeds on the keys of the leases, if there are any.
	StateJoined State = iota
	// StateSuspended: the leases have reached their deadline without a reply of a leader.
	StateSuspended
	// StateEnded: Close was called. With a Mover, Check succeeds on each range until it has
	// moved.
	StateEnded
)

// String returns the name of the state.
func (s State) String() string { return [...]string{"joined", "suspended", "ended"}[s] }

// A Status is the state of an owner with the numbers of its leases. A readiness probe
// reports ready if State is StateJoined; an owner without leases is ready,
// too. A liveness probe must not depend on it: a server that is restarted while it is
// suspended loses its state.
type Status struct {
	State State
	// LastContact is the time of the last reply of a leader.
	LastContact time.Time
	// Held is the number of held leases: Check succeeds on their keys.
	Held int
	// Suspended is the number of leases that have reached their deadline without a reply of a
	// leader. Check and Held fail on their keys, and leases and state are kept until a
	// leader replies: see [Config.OnSuspend]. Held or Suspended is 0.
	Suspended int
	// SuspendedSince is that deadline; zero if no lease is suspended.
	SuspendedSince time.Time
}

// Status returns the current status. It costs the same as Check.
func (o *Owner) Status() Status {
	h := o.holding.Load()
	now := o.clock.Now()
	past := func(at mono.Instant) time.Time { return time.Now().Add(-now.Sub(at)) }
	s := Status{LastContact: past(mono.Instant(o.contact.Load()))}
	leases := len(h.areas.held)
	switch {
	case leases == 0 || o.detector.Epoch(now) != h.epoch:
	case now < h.until:
		s.Held = leases
	default:
		s.State, s.Suspended, s.SuspendedSince = StateSuspended, leases, past(h.until)
	}
	if o.closing.Load() {
		s.State = StateEnded
	}
	return s
}

// Suspended reports whether this process has a suspended lease on the key. Call it after
// Check has failed, to select the error: if it is true, the lease table still names
// this server, nothing was done, and callers retry at this server ([leasehold.ErrSuspended]).
// Otherwise they look the key up again ([leasehold.ErrNotOwner]). It costs the same as Check.
func (o *Owner) Suspended(key leasehold.Key) bool {
	h := o.holding.Load()
	now := o.clock.Now()
	return now >= h.until && o.detector.Epoch(now) == h.epoch && h.areas.find(key).Generation != 0
}
