package owner

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// Bounds on those who wait for a key to be served.
const (
	// longestAwait is how long one waits. A range comes within milliseconds, or
	// something has gone wrong; then callers should hear of it, and look again.
	longestAwait = time.Second
	// maxAwaiting is how many wait at a time.
	maxAwaiting = 4096
)

// Await is for requests that come a moment too early. When a range moves, callers
// may hear of its new owner before that has heard of the lease, or has put the
// state in its place. A server that refuses them then has them come back after a
// backoff, which takes longer than what is left to be done.
//
// If this process does not hold the key, but has all of its state and is about to,
// Await waits until it does; for a second at most, and for as long as the context
// allows. In all other cases it returns at once. It returns nil if the key was held when
// it returned, which is worth no more than any earlier Check: call Await first, without
// a lock of the application, and Check after it, under the lock, as always.
//
// Otherwise it returns what a server that has done nothing answers:
// [leasehold.ErrSuspended] if the lease is suspended, [leasehold.ErrNotOwner] if the key is
// not held, also after the owner was closed, and [leasehold.ErrUnavailable], with the cause of the context, if that ended first.
//
//	if err := o.Await(ctx, key); err != nil {
//		return err
//	}
//	s.mu.Lock()
//	defer s.mu.Unlock()
//	lease, ok := o.Check(key)
//	...
//
// Only ranges that come with their state are waited for, see [Mover]. A key whose lease
// is suspended is not: an outage may last, and callers come back. At most 4096
// calls wait at a time; more are not made to wait. Nothing is started for one that
// waits, and one that need not wait costs what Check costs.
func (o *Owner) Await(ctx context.Context, key leasehold.Key) error {
	if o.holds(key) {
		return nil
	}
	if !o.holding.Load().comes(key) {
		return o.absence(key) // it may have come between the two
	}
	if o.awaiting.Add(1) > maxAwaiting {
		o.awaiting.Add(-1)
		return o.absence(key)
	}
	defer o.awaiting.Add(-1)
	return o.await(ctx, key)
}

// absence is why a key is not held, nil if it is.
func (o *Owner) absence(key leasehold.Key) error {
	switch {
	case o.holds(key):
		return nil
	case o.Suspended(key):
		return leasehold.ErrSuspended
	}
	return leasehold.ErrNotOwner
}

// await waits as long as the key is about to be held, and the context allows.
func (o *Owner) await(ctx context.Context, key leasehold.Key) error {
	timer := time.NewTimer(longestAwait)
	defer timer.Stop()
	for {
		// In this order: if it is not held, it was not when h was read, and what
		// makes it so supersedes h.
		h := o.holding.Load()
		if o.holds(key) || !h.comes(key) {
			return o.absence(key)
		}
		select {
		case <-h.superseded:
		case <-timer.C:
			return o.absence(key)
		case <-ctx.Done():
			return leasehold.Errorf("await", leasehold.ErrUnavailable, key.String(), "%w", context.Cause(ctx))
		case <-o.ctx.Done(): // it is closed
			return o.absence(key)
		}
	}
}

// AwaitEnd waits until a lease, as Check returned it, has ended on its key, and returns nil;
// or until the context ends, and returns its cause. It is for what goes on without
// being asked, such as a stream of events, which nobody else would stop. Like OnRevoke it
// may come late: Held is what decides.
//
// A suspension is no end: AwaitEnd waits on while the lease is suspended, and returns if it
// is revoked after that. Held fails meanwhile, so that nothing is sent.
//
// Nothing is started for one that waits. It wakes up whenever leases are renewed,
// which costs what Held costs.
func (o *Owner) AwaitEnd(ctx context.Context, lease Lease) error {
	for {
		// In this order: what ends the lease after it was found held supersedes h.
		h := o.holding.Load()
		if o.ended(h, lease) {
			return nil
		}
		select {
		case <-h.superseded:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-o.done: // what is held then is superseded before
			return nil
		}
	}
}

// ended reports whether a lease has ended by a holding: it is neither held nor suspended.
func (o *Owner) ended(h *holding, lease Lease) bool {
	return h.areas.find(lease.Key).Generation != lease.Generation || o.detector.Epoch(o.clock.Now()) != h.epoch
}

// holds is Check for those who do not act on it.
func (o *Owner) holds(key leasehold.Key) bool {
	l, _ := o.find(key)
	return l != nil && l.Generation != 0
}
