package protocol

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// Timing is the timing of a namespace, which the leader sends to owners.
type Timing struct {
	Lease time.Duration // lease duration, from the owner's send time
	Renew time.Duration // renewal interval
	Drift mono.Drift    // bound on the ratio of clock rates
}

// Limits of configurable times. The upper limit keeps sums far from overflow.
const (
	MinLease = 10 * time.Millisecond
	MinRenew = time.Millisecond
	MaxLease = 24 * time.Hour
	MaxDrift = 10
)

// Validate reports an invalid timing.
func (t Timing) Validate() error {
	const op = "timing"
	switch {
	case t.Lease < MinLease || t.Lease > MaxLease:
		return leasehold.Errorf(op, leasehold.ErrInvalid, t.Lease.String(), "a lease lasts %v to %v", MinLease, MaxLease)
	case t.Renew < MinRenew || t.Renew > t.Lease/2:
		return leasehold.Errorf(op, leasehold.ErrInvalid, t.Renew.String(), "renewals come at least twice in a lease of %v, and not more often than every %v", t.Lease, MinRenew)
	case !(t.Drift >= 1 && t.Drift <= MaxDrift):
		return leasehold.Errorf(op, leasehold.ErrInvalid, "drift", "is %v, want 1 to %d", float64(t.Drift), MaxDrift)
	}
	return nil
}

// Hold is how long the leader does not grant a range to another owner after it accepted the
// holder's request: at least the lease duration on the holder's clock.
func (t Timing) Hold() time.Duration { return t.Drift.Stretch(t.Lease) }

// DefaultTiming fits a data centre: an owner loses its leases only if three consecutive renewals
// fail.
func DefaultTiming() Timing {
	return Timing{Lease: 10 * time.Second, Renew: 2500 * time.Millisecond, Drift: 1.20}
}

// PaperTiming is Centrifuge's (2.3, 2.3.1): 60 second leases, renewed every 15 seconds, with a hold
// of 65 seconds.
func PaperTiming() Timing {
	return Timing{Lease: 60 * time.Second, Renew: 15 * time.Second, Drift: 65.0 / 60.0}
}
