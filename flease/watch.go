package flease

import (
	"context"
	"iter"
	"slices"
	"time"

	machine "github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// A Holder is the probable holder of a resource.
type Holder struct {
	ID    ID        `json:"id,omitempty"` // 0: none; the other fields are then zero
	Fence uint64    `json:"fence,omitempty,string"`
	Until time.Time `json:"until,omitzero"` // when the lease expires unless it is renewed, by the holder's clock
	// Unsure is true if this member does not have enough information: it started, or
	// started to watch, less than a lease ago, or is acquiring the resource itself. The
	// other fields are then zero.
	Unsure bool `json:"unsure,omitempty"`
}

// Watch yields the probable holder of a resource: at once, and then after each change.
// It is a hint. This member may have missed messages, or received those of a round that
// did not reach a majority, when several members compete. The result is usually correct
// one lease after the last change. It names this member only if this member holds the
// lease. A renewal is not a change, so Until is the expiry when the holder was first
// seen. A slow caller receives only the newest change. Watch does not block the node,
// and starts no goroutine.
//
// The error is nil in all pairs but the last, which has the reason for the end: the
// cause of ctx, [Node.Err], or that the resource cannot be watched, because this member
// is not in its group ([leasehold.ErrInvalid]) or MaxResources is reached
// ([leasehold.ErrLimit]).
func (n *Node) Watch(ctx context.Context, resource string) iter.Seq2[Holder, error] {
	return func(yield func(Holder, error) bool) {
		signal, err := n.watch(resource)
		if err != nil {
			yield(Holder{}, err)
			return
		}
		defer n.unwatch(resource, signal)
		var last Holder
		for first := true; ; first = false {
			holder, wait := n.holder(resource)
			if first || holder.ID != last.ID || holder.Fence != last.Fence || holder.Unsure != last.Unsure {
				last = holder
				if !yield(holder, nil) {
					return
				}
			}
			if err := n.await(ctx, signal, wait); err != nil {
				yield(Holder{}, err)
				return
			}
		}
	}
}

// watch registers a signal for changes of a resource's holder.
func (n *Node) watch(resource string) (signal chan struct{}, err error) {
	n.step(func(now machine.Time) {
		if n.life.closing {
			err = errClosed(opWatch, resource)
			return
		}
		if err = n.machine.Watch(now, resource, true); err == nil {
			signal = make(chan struct{}, 1)
			n.watches[resource] = append(n.watches[resource], signal)
		}
	})
	return signal, err
}

func (n *Node) unwatch(resource string, signal chan struct{}) {
	n.step(func(now machine.Time) {
		left := slices.DeleteFunc(n.watches[resource], func(c chan struct{}) bool { return c == signal })
		if len(left) > 0 {
			n.watches[resource] = left
			return
		}
		delete(n.watches, resource)
		_ = n.machine.Watch(now, resource, false) // cannot fail for a watched resource
	})
}

// signal signals the watchers of a resource. The lock is held.
func (n *Node) signal(resource string) {
	for _, signal := range n.watches[resource] {
		select {
		case signal <- struct{}{}:
		default: // a signal is pending
		}
	}
}

// holder returns the probable holder of a resource, and when to read it again without a
// signal: the expiry of a lease sends none.
func (n *Node) holder(resource string) (Holder, time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now, _ := n.time.read()
	return n.holderAt(now, resource)
}

func (n *Node) holderAt(now machine.Time, resource string) (Holder, time.Duration) {
	note := n.machine.Look(now, resource)
	switch {
	case note.Unsure:
		return Holder{Unsure: true}, n.cfg.Lease / 20
	case note.Holder == 0:
		return Holder{}, time.Hour
	}
	h := Holder{ID: ID(note.Holder), Fence: note.Fence, Until: timeOf(note.Until)}
	return h, max(note.Until.Sub(now.Wall)+n.cfg.Epsilon+1, n.cfg.Lease/20)
}

// await waits for a signal or the timeout. It returns an error if the watch ends.
func (n *Node) await(ctx context.Context, signal <-chan struct{}, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-n.Done():
		return n.Err()
	case <-signal:
	case <-timer.C:
	}
	return nil
}
