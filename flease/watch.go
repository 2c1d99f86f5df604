package flease

import (
	"context"
	"iter"
	"slices"
	"time"

	machine "github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// A Holder is who seems to have a resource.
type Holder struct {
	ID    ID        `json:"id,omitempty"` // 0: nobody; the rest is zero, too
	Fence uint64    `json:"fence,omitempty,string"`
	Until time.Time `json:"until,omitzero"` // when it ends unless it is renewed, by the holder's clock
	// Unsure is true if this member cannot tell yet whether anybody has it: it has
	// started or begun to watch less than a lease ago, or asks for it itself. The
	// rest is zero then.
	Unsure bool `json:"unsure,omitempty"`
}

// Watch yields who seems to have a resource: at once, and then whenever that
// changes. It is a hint. This member may not
// have been told, or been told of what was never agreed upon, which is the case
// when several ask at a time; it may be late. As a rule it is right a lease after
// the last change. But that this very member has it, it says only if it does. A
// renewal is not a change, so Until is that of when the holder was seen first. Who
// takes longer for one than until the next sees the last of them. Nothing waits
// for the one who watches, and no goroutine is started.
//
// The error is nil in all pairs but the last, which says why the iteration ended: the
// cause of ctx, [Node.Err], or that the resource cannot be watched, because this member
// is not in its group ([leasehold.ErrInvalid]) or there is no room ([leasehold.ErrLimit]).
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

// watch begins to signal when a resource changes hands.
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
		_ = n.machine.Watch(now, resource, false) // it was possible before
	})
}

// changed signals those who watch a resource. It is called with the lock held.
func (n *Node) changed(resource string) {
	for _, signal := range n.watches[resource] {
		select {
		case signal <- struct{}{}:
		default: // has one that has not been seen
		}
	}
}

// holder returns who seems to have a resource, and when to look again although
// nobody has signalled: when a lease ends, nobody does.
func (n *Node) holder(resource string) (Holder, time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now, _ := n.time.read()
	return n.seen(now, resource)
}

func (n *Node) seen(now machine.Time, resource string) (Holder, time.Duration) {
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

// await waits for a signal or for the time to pass. It fails if the watch ends.
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
