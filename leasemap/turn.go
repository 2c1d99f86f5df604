package leasemap

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// A turn is whose turn it is to operate on a name: a lock that can be waited for with a
// context, and that costs no more than a mutex while nobody waits. Those who wait do so on
// a channel, so that they do not stop a virtual clock.
//
// Its lists are under the shard's lock, which nobody holds for long.
type turn struct {
	taken   atomic.Bool
	waiting atomic.Int32     // len(waiters), or one more while somebody makes up his mind
	waiters *[]chan struct{} // nil if nobody ever waited: an entry is to fit into a cache line
}

// try takes the turn if nobody has it.
func (t *turn) try() bool { return t.taken.CompareAndSwap(false, true) }

// take takes the turn, and waits for it. It fails when the context ends.
func (t *turn) take(ctx context.Context, mu *sync.Mutex) error {
	if t.try() {
		return nil
	}
	mu.Lock()
	t.waiting.Add(1)
	// Whoever gives the turn back looks at waiting after that. So either we see that it
	// is free, or it sees that we wait.
	if t.try() {
		t.waiting.Add(-1)
		mu.Unlock()
		return nil
	}
	mine := make(chan struct{})
	if t.waiters == nil {
		t.waiters = new([]chan struct{})
	}
	*t.waiters = append(*t.waiters, mine)
	mu.Unlock()
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
	}
	mu.Lock()
	if i := slices.Index(*t.waiters, mine); i >= 0 {
		*t.waiters = slices.Delete(*t.waiters, i, i+1)
		t.waiting.Add(-1)
		mu.Unlock()
		return context.Cause(ctx)
	}
	mu.Unlock()
	t.give(mu) // it was given to us at the same moment
	return context.Cause(ctx)
}

// give gives the turn back, to whoever has waited longest.
func (t *turn) give(mu *sync.Mutex) {
	t.taken.Store(false)
	if t.waiting.Load() == 0 {
		return
	}
	mu.Lock()
	defer mu.Unlock()
	t.next()
}

// next wakes one who waits, unless another was faster. The shard's lock is held.
func (t *turn) next() {
	if t.waiters != nil && len(*t.waiters) > 0 && t.try() {
		first := (*t.waiters)[0]
		*t.waiters = (*t.waiters)[1:]
		t.waiting.Add(-1)
		close(first)
	}
}
