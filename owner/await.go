package owner

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// Limits of calls that wait for a key.
const (
	// maxAwait is the timeout of a call. A range normally arrives within milliseconds;
	// otherwise callers should look the key up again.
	maxAwait = time.Second
	// maxAwaiting limits the concurrent calls that wait.
	maxAwaiting = 4096
)

// Await waits for a key that is moving to this process. When a range moves, callers
// may receive the address of its new owner before the owner has received the lease or
// installed the state. Without Await the owner refuses their requests, and they retry after
// a backoff, which takes longer than the rest of the move.
//
// If this process does not hold the key, but has all of its state and expects the lease,
// Await waits for the lease; for a second at most, and for as long as the context
// allows. In all other cases it returns at once. It returns nil if the key was held when
// it returned, which does not replace a Check: call Await first, without
// a lock of the application, and then Check under the lock.
//
// Otherwise it returns an error that means that nothing was done:
// [leasehold.ErrSuspended] if the lease is suspended, [leasehold.ErrNotOwner] if the key is
// not held or the owner was closed, and [leasehold.ErrUnavailable], with the cause of the context, if that ended first.
//
//	if err := o.Await(ctx, key); err != nil {
//		return err
//	}
//	s.mu.Lock()
//	defer s.mu.Unlock()
//	lease, ok := o.Check(key)
//	...
//
// Await waits only for ranges that arrive with their state, see [Mover]. It does not wait for
// a suspended lease, because an outage may be long. At most 4096
// calls wait concurrently; further ones return at once. A call that waits starts no
// goroutine; a call that does not wait costs the same as Check.
func (o *Owner) Await(ctx context.Context, key leasehold.Key) error {
	if o.holds(key) {
		return nil
	}
	if !o.holding.Load().expects(key) {
		return o.absenceError(key) // the lease may have arrived between the two
	}
	if o.awaiting.Add(1) > maxAwaiting {
		o.awaiting.Add(-1)
		return o.absenceError(key)
	}
	defer o.awaiting.Add(-1)
	return o.await(ctx, key)
}

// absenceError returns the reason why a key is not held, nil if it is held.
func (o *Owner) absenceError(key leasehold.Key) error {
	switch {
	case o.holds(key):
		return nil
	case o.Suspended(key):
		return leasehold.ErrSuspended
	}
	return leasehold.ErrNotOwner
}

// await waits until the key is held or not expected any more, or the context ends.
func (o *Owner) await(ctx context.Context, key leasehold.Key) error {
	timer := time.NewTimer(maxAwait)
	defer timer.Stop()
	for {
		// In this order: if the key is not held, it was not held when h was read, and the
		// holding that contains it supersedes h.
		h := o.holding.Load()
		if o.holds(key) || !h.expects(key) {
			return o.absenceError(key)
		}
		select {
		case <-h.superseded:
		case <-timer.C:
			return o.absenceError(key)
		case <-ctx.Done():
			return leasehold.Errorf("await", leasehold.ErrUnavailable, key.String(), "%w", context.Cause(ctx))
		case <-o.ctx.Done(): // closed
			return o.absenceError(key)
		}
	}
}

// AwaitEnd waits until a lease that Check returned has ended on its key, and returns nil.
// If the context ends first, it returns its cause. It is for long-running responses, such as
// a stream of events, which must end with the lease. Like OnRevoke it
// may return late: Held is authoritative.
//
// AwaitEnd keeps waiting while Check and Held fail but the lease is kept: it is suspended, or
// its range is being moved (see [Config.OnSuspend]). It returns if the lease is revoked after that. So
// it returns for exactly the leases that OnRevoke receives.
//
// A call that waits starts no goroutine. It wakes up at every renewal,
// at the cost of Held.
func (o *Owner) AwaitEnd(ctx context.Context, lease Lease) error {
	for {
		// In this order: the holding that ends the lease supersedes h.
		h := o.holding.Load()
		if o.ended(h, lease) {
			return nil
		}
		select {
		case <-h.superseded:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-o.done: // Close has superseded h before
			return nil
		}
	}
}

// ended reports whether a lease is not kept in a holding.
func (o *Owner) ended(h *holding, lease Lease) bool {
	return !h.view.Keeps(lease.Key, lease.Generation) || o.detector.Epoch(o.clock.Now()) != h.epoch
}

// holds is Check without counting load.
func (o *Owner) holds(key leasehold.Key) bool {
	l, _ := o.find(key)
	return l != nil && l.Generation != 0
}
