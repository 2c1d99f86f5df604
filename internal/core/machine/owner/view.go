package owner

import (
	"sort"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// A View is what an owner holds, as of the machine's last step. It is
// immutable, so that any number of goroutines may check against it.
type View struct {
	Leases []leasehold.Lease // what checks find, sorted by range
	Until  mono.Instant      // all of them end here
	// Kept is what the application has the state of: Leases, and besides those
	// the ranges that it must not touch for a moment because they are about to
	// move away. They may yet come back as they were.
	Kept []leasehold.Lease
	// Coming is what will be served here in a moment, if all goes well: its state
	// is here, its source has stopped, and the lease is granted or about to be.
	Coming []leasehold.Range
	// Drift is by how much the clocks of others may run more slowly than ours.
	Drift mono.Drift
}

// Check returns the lease that covers k, if it is held at now
// (CheckLeaseNow of the paper).
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

// Held reports whether the lease that covered k when it was checked is held at
// now, and so has been held all along (CheckLeaseContinuous of the paper).
func (v *View) Held(now mono.Instant, k leasehold.Key, g leasehold.Generation) bool {
	l, ok := v.Check(now, k)
	return ok && l.Generation == g
}
