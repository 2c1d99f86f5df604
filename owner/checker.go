package owner

import (
	"context"

	"github.com/leasehold-dev/leasehold"
)

// A Checker reports which keys this process owns. [Owner] implements it. Packages leasemap
// and leasehttp use a Checker, so that a test can replace the owner. A Checker must be
// safe for concurrent use.
type Checker interface {
	// Check returns the lease that covers the key, and reports whether it is held now.
	Check(key leasehold.Key) (Lease, bool)
	// Held reports whether the lease has been held without a gap since Check returned it.
	Held(lease Lease) bool
	// Suspended reports whether the lease on the key is suspended.
	Suspended(key leasehold.Key) bool
	// Await waits for a key that is moving to this process. See [Owner.Await].
	Await(ctx context.Context, key leasehold.Key) error
}

var _ Checker = (*Owner)(nil)
