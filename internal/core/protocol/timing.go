package protocol

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// Timing is what the leader tells owners about time.
type Timing struct {
	Lease time.Duration // how long a lease lasts from the owner's send time
	Renew time.Duration // how often an owner sends
	Drift mono.Drift    // by how much clocks may differ in rate
}

// Bounds on configurable times. The upper one keeps sums far from overflow.
const (
	MinLease = 10 * time.Millisecond
	MinRenew = time.Millisecond
	MaxLease = 24 * time.Hour
	MaxDrift = 10
)

// Validate reports what is wrong with the timing.
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

// Hold is how long the leader keeps a range from others after it accepted the
// holder's request: no less than the lease on the holder's clock.
func (t Timing) Hold() time.Duration { return t.Drift.Stretch(t.Lease) }

// DefaultTiming fits a data centre: an owner must miss three renewals in a row
// to lose its leases.
func DefaultTiming() Timing {
	return Timing{Lease: 10 * time.Second, Renew: 2500 * time.Millisecond, Drift: 1.20}
}

// PaperTiming is what Centrifuge ran with (2.3, 2.3.1): 60 second leases,
// renewed every 15, kept from others for 65.
func PaperTiming() Timing {
	return Timing{Lease: 60 * time.Second, Renew: 15 * time.Second, Drift: 65.0 / 60.0}
}
