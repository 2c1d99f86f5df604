package owner

import (
	"sort"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// A View is the set of an owner's leases after a step of the machine. It is immutable, so any
// number of goroutines may use it for checks.
type View struct {
	Leases []leasehold.Lease // the served leases, sorted by range
	Until  mono.Instant      // the deadline of all leases
	// Kept are the leases whose state the application has, sorted by range: Leases, and those
	// that a move has stopped. If the move fails, these are served again. A lease has ended
	// when it is not kept any more, and [RevokedLeases] follows.
	Kept []leasehold.Lease
	// Coming are the ranges that are probably served here soon: their state is here, the source
	// has stopped, and the lease is granted or will be.
	Coming []leasehold.Range
	// Drift limits how much slower the clocks of other processes may be.
	Drift mono.Drift
}

// Check returns the lease that covers k if it is valid at now
// (CheckLeaseNow in the paper).
func (v *View) Check(now mono.Instant, k leasehold.Key) (leasehold.Lease, bool) {
	if now >= v.Until {
		return leasehold.Lease{}, false
	}
	return find(v.Leases, k)
}

// Held reports whether a lease of generation g covers k at now. Then no other owner has held k since a
// check returned that generation (CheckLeaseContinuous in the paper).
func (v *View) Held(now mono.Instant, k leasehold.Key, g leasehold.Generation) bool {
	l, ok := v.Check(now, k)
	return ok && l.Generation == g
}

// Keeps reports whether a lease of generation g on k has not ended: it is held, suspended, or stopped by a
// move that may still fail.
func (v *View) Keeps(k leasehold.Key, g leasehold.Generation) bool {
	l, ok := find(v.Kept, k)
	return ok && l.Generation == g
}

// Unserved returns the kept leases on which checks fail: all if the leases are suspended, and otherwise those that
// a move has stopped.
func (v *View) Unserved(suspended bool) []leasehold.Lease {
	if suspended {
		return v.Kept
	}
	return protocol.Missing(v.Kept, v.Leases)
}

// find returns the lease that covers k, in sorted leases.
func find(leases []leasehold.Lease, k leasehold.Key) (leasehold.Lease, bool) {
	i := sort.Search(len(leases), func(i int) bool { return leases[i].Range.Start > k }) - 1
	if i < 0 || !leases[i].Range.Contains(k) {
		return leasehold.Lease{}, false
	}
	return leases[i], true
}
