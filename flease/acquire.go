package flease

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
)

// Acquire returns a lease of a resource. It waits until the node is ready, a majority of
// the members replies, and no other member holds the lease, or until ctx ends. If this
// process holds a lease of the resource, Acquire waits until that ends: calls for one
// resource are served in order.
func (n *Node) Acquire(ctx context.Context, resource string) (*Lease, error) {
	r := n.claim(ctx, toHold, []string{resource})[0]
	return r.Lease, r.Err
}

// TryAcquire returns a lease of a resource if it is free, and otherwise a [*HeldError]
// with the holder. It waits until the node is ready, and for replies of the members; if
// fewer than a majority reply for some seconds, the error is of kind
// [leasehold.ErrUnavailable]. It also returns a HeldError if this process holds the
// lease, or another call waits for it.
func (n *Node) TryAcquire(ctx context.Context, resource string) (*Lease, error) {
	r := n.claim(ctx, toTry, []string{resource})[0]
	return r.Lease, r.Err
}

// AcquireAll returns leases of all the resources, in their order, or none and an
// error. It waits like [Node.Acquire]. It acquires them in any order: two calls with
// overlapping resources can deadlock until one of their contexts ends.
func (n *Node) AcquireAll(ctx context.Context, resources []string) ([]*Lease, error) {
	results := n.claim(ctx, toHold, resources)
	leases := make([]*Lease, 0, len(results))
	var failed error
	for _, r := range results {
		if r.Err == nil {
			leases = append(leases, r.Lease)
		} else {
			failed = cmp.Or(failed, r.Err)
		}
	}
	if failed != nil {
		n.release(leases) // in the background
		return nil, failed
	}
	return leases, nil
}

// TryAcquireAll tries to acquire each of the resources, like [Node.TryAcquire], and
// returns the results in their order. It costs a few microseconds per resource;
// separate calls cost two round trips each.
func (n *Node) TryAcquireAll(ctx context.Context, resources []string) []Result {
	return n.claim(ctx, toTry, resources)
}

// claim claims resources, and returns the results.
func (n *Node) claim(ctx context.Context, what task, names []string) []Result {
	b := &batch{task: what, names: names, results: make([]Result, len(names)), done: make(chan struct{})}
	if len(names) == 0 {
		return b.results
	}
	b.entries = make([]*entry, len(names))
	failpoint.Here("flease/before-asking")
	n.step(func(now machine.Time) {
		n.observe(now)
		n.requests.batches++
		b.number = n.requests.batches
		n.advance(now, b)
	})
	select {
	case <-b.done:
		failpoint.Here("flease/answered")
	case <-ctx.Done():
		n.step(func(now machine.Time) {
			n.observe(now)
			n.cancel(now, b, func(name string) error {
				return leasehold.Errorf(opAcquire, leasehold.ErrUnavailable, name, "%s: %w", n.obstacle(now, name), context.Cause(ctx))
			})
		})
		<-b.done
	}
	return b.results
}

// obstacle returns why a resource is not acquired yet.
func (n *Node) obstacle(now machine.Time, name string) string {
	note := n.machine.Look(now, name)
	have, want, waiting := n.machine.Answers(name)
	switch e := n.entry(name); {
	case e != nil && e.lease != nil:
		return "another call of this process holds it"
	case !n.machine.Ready():
		return n.notReadyReason()
	case note.Holder != 0:
		return fmt.Sprintf("member %s probably holds it", n.nameOf(ID(note.Holder)))
	case waiting && have < want:
		return fmt.Sprintf("too few members of its group reply: %d so far, including this one, and %d are required", have, want)
	}
	return "the members have not agreed yet"
}

// ReleaseAll releases leases of this node, like [Lease.Release], many in one
// packet. None of them is valid after the start of the call. It returns the first
// error.
func (n *Node) ReleaseAll(ctx context.Context, leases []*Lease) error {
	for _, l := range leases {
		if l.node != n {
			return leasehold.Errorf(opRelease, leasehold.ErrInvalid, l.Resource(), "the lease is of another node")
		}
	}
	if len(leases) == 0 {
		return nil
	}
	b := n.release(leases)
	failpoint.Here("flease/releasing")
	select {
	case <-b.done:
	case <-n.life.closed:
	case <-ctx.Done():
	}
	switch {
	case isClosed(b.done): // preferred if several have ended
	case ctx.Err() != nil:
		return leasehold.Errorf(opRelease, leasehold.ErrUnavailable, leases[0].Resource(),
			"no acks from the members: %w", context.Cause(ctx))
	default:
		return errClosed(opRelease, leases[0].Resource())
	}
	for _, r := range b.results {
		if r.Err != nil {
			return r.Err
		}
	}
	return nil
}

// release starts to release leases, without waiting. It may continue after the call that
// requested it.
func (n *Node) release(leases []*Lease) *batch {
	b := &batch{task: toRelease, leases: slices.Clone(leases), results: make([]Result, len(leases)), done: make(chan struct{})}
	n.step(func(now machine.Time) {
		for _, l := range leases {
			l.end(released)
		}
		n.advance(now, b)
	})
	return b
}
