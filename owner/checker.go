package owner

import (
	"context"

	"github.com/leasehold-dev/leasehold"
)

// A Checker reports which keys this process owns. [Owner] implements it. Packages leasemap
// and leasehttp ask a Checker, so that a test can replace the owner. Its methods may be
// called from many goroutines at once.
type Checker interface {
	// Check returns the lease that covers the key, and whether it is held now.
	Check(key leasehold.Key) (Lease, bool)
	// Held reports whether the lease has been held without a gap since Check returned it.
	Held(lease Lease) bool
	// Suspended reports whether there is a lease on the key that is suspended.
	Suspended(key leasehold.Key) bool
	// Await waits for a key that is about to arrive. See [Owner.Await].
	Await(ctx context.Context, key leasehold.Key) error
}

var _ Checker = (*Owner)(nil)
