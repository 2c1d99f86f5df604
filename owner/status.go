package owner

import (
	"time"

	"github.com/leasehold-dev/leasehold"
)

// A Status is how many leases an owner has at a moment, and whether they can be used.
type Status struct {
	// Held is how many leases are held: Check succeeds on their keys.
	Held int
	// Suspended is how many leases have reached their deadline without an answer of a
	// leader. Check and Held fail on their keys, and leases and state are kept until a
	// leader answers: see [Config.OnSuspend]. Held or Suspended is 0.
	Suspended int
	// SuspendedSince is that deadline; zero if nothing is suspended.
	SuspendedSince time.Time
}

// Status returns how many leases are held or suspended now. It costs what Check costs.
func (o *Owner) Status() Status {
	h := o.holding.Load()
	now := o.clock.Now()
	leases := len(h.areas.held)
	switch {
	case leases == 0 || o.detector.Epoch(now) != h.epoch:
		return Status{}
	case now < h.until:
		return Status{Held: leases}
	}
	return Status{Suspended: leases, SuspendedSince: time.Now().Add(-now.Sub(h.until))}
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
