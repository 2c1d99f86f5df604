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

// Acquire returns a lease of a resource. It waits for as long as another has it,
// for as long as too few members answer, for as long as the node is not ready,
// and for as long as ctx allows. If this process has a lease of the resource
// already, it waits until that is over: calls for one resource are served in
// their order.
func (n *Node) Acquire(ctx context.Context, resource string) (*Lease, error) {
	r := n.claim(ctx, toHold, []string{resource})[0]
	return r.Lease, r.Err
}

// TryAcquire returns a lease of a resource if nobody has it, and otherwise a
// [*HeldError], which says who has it. It waits until the node is ready and for
// the answers of the members; if too few answer for some seconds, the error is of
// kind [leasehold.ErrUnavailable]. If this process has a lease of the resource, or
// another call waits for one, that is a HeldError too.
func (n *Node) TryAcquire(ctx context.Context, resource string) (*Lease, error) {
	r := n.claim(ctx, toTry, []string{resource})[0]
	return r.Lease, r.Err
}

// AcquireAll returns leases of all the resources, in their order, or none and an
// error. It waits as [Node.Acquire] does. It acquires them in any order: two such
// calls whose resources overlap can each have what the other waits for, until
// their contexts end.
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
		n.release(leases) // nobody has to wait for it
		return nil, failed
	}
	return leases, nil
}

// TryAcquireAll tries to acquire each of the resources, as [Node.TryAcquire] does,
// and returns what became of each, in their order. It costs a few microseconds
// for a resource, where one by one costs two round trips.
func (n *Node) TryAcquireAll(ctx context.Context, resources []string) []Result {
	return n.claim(ctx, toTry, resources)
}

// claim wants resources, and returns what became of each.
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
		<-b.done // whatever was left has ended now
	}
	return b.results
}

// obstacle says what those wait for who want a resource.
func (n *Node) obstacle(now machine.Time, name string) string {
	note := n.machine.Look(now, name)
	have, want, waiting := n.machine.Answers(name)
	switch e := n.entry(name); {
	case e != nil && e.lease != nil:
		return "another call of this process has it"
	case !n.machine.Ready():
		return n.whyNotReady()
	case note.Holder != 0:
		return fmt.Sprintf("member %s seems to have it", n.nameOf(ID(note.Holder)))
	case waiting && have < want:
		return fmt.Sprintf("too few members of its group answer, %d so far, this one among them, and %d must", have, want)
	}
	return "the members have not agreed yet"
}

// ReleaseAll releases leases of this node, as [Lease.Release] does, many in a
// packet. None of them is valid from the beginning of the call on. It returns the
// first error.
func (n *Node) ReleaseAll(ctx context.Context, leases []*Lease) error {
	for _, l := range leases {
		if l.node != n {
			return leasehold.Errorf(opRelease, leasehold.ErrInvalid, l.Resource(), "a lease of another node")
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
	case isClosed(b.done): // whatever else has ended, too
	case ctx.Err() != nil:
		return leasehold.Errorf(opRelease, leasehold.ErrUnavailable, leases[0].Resource(),
			"the members have not confirmed it: %w", context.Cause(ctx))
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

// release begins to release leases, and does not wait. It may go on after the call
// that it is done for.
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
