package owner

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// A State is what an owner can do at a moment.
type State uint8

// The states of an owner.
const (
	// StateJoined: Check succeeds on the keys of the leases, if there are any.
	StateJoined State = iota
	// StateSuspended: the leases have reached their deadline, and no leader has answered.
	StateSuspended
	// StateEnded: Close was called. With a Mover, Check succeeds on each range until it has
	// moved.
	StateEnded
)

// String names the state.
func (s State) String() string { return [...]string{"joined", "suspended", "ended"}[s] }

// A Status is what an owner can do at a moment, and how many leases it has. A readiness probe
// reports that the server is ready if State is StateJoined; an owner without leases is ready,
// too. A liveness probe does not depend on it: a server that is restarted while it is
// suspended loses its state.
type Status struct {
	State State
	// LastContact is when a leader last answered.
	LastContact time.Time
	// Held is how many leases are held: Check succeeds on their keys.
	Held int
	// Suspended is how many leases have reached their deadline without an answer of a
	// leader. Check and Held fail on their keys, and leases and state are kept until a
	// leader answers: see [Config.OnSuspend]. Held or Suspended is 0.
	Suspended int
	// SuspendedSince is that deadline; zero if nothing is suspended.
	SuspendedSince time.Time
}

// Status returns the present status. It costs what Check costs.
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

// Suspended reports whether this process has a lease on the key that is suspended. Ask when
// Check has failed, to tell callers what to do: if it is true, the lease table still names
// this server, nothing was done, and they wait and ask here again ([leasehold.ErrSuspended]). If
// not, they look for another server ([leasehold.ErrNotOwner]). It costs what Check costs.
func (o *Owner) Suspended(key leasehold.Key) bool {
	h := o.holding.Load()
	now := o.clock.Now()
	return now >= h.until && o.detector.Epoch(now) == h.epoch && h.areas.find(key).Generation != 0
}
