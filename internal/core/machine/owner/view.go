package owner

import (
	"sort"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// A View is the set of an owner's leases after a step of the machine. It is immutable, so any
// number of goroutines may use it for checks.
type View struct {
	Leases []leasehold.Lease // the served leases, sorted by range
	Until  mono.Instant      // the deadline of all leases
	// Kept are the leases whose state the application has: Leases, and those that a move has
	// stopped. If the move fails, these are served again.
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
	i := sort.Search(len(v.Leases), func(i int) bool { return v.Leases[i].Range.Start > k }) - 1
	if i < 0 || !v.Leases[i].Range.Contains(k) {
		return leasehold.Lease{}, false
	}
	return v.Leases[i], true
}

// Held reports whether a lease of generation g covers k at now. Then no other owner has held k since a
// check returned that generation (CheckLeaseContinuous in the paper).
func (v *View) Held(now mono.Instant, k leasehold.Key, g leasehold.Generation) bool {
	l, ok := v.Check(now, k)
	return ok && l.Generation == g
}
