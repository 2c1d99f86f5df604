package lookup

import (
	"context"
	"sync"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/failpoint"
	"github.com/leasehold-dev/leasehold/internal/table"
)

// An outbox holds what the machine has decided and nobody has seen yet: the
// newest table, and all losses on the way to it. Who fills it never waits. It
// may be used from many goroutines at once.
type outbox struct {
	keep   int
	filled chan struct{} // holds one token while there is something

	mu      sync.Mutex
	table   *table.Table
	losses  []leasehold.Loss
	dropped leasehold.LSN // losses up to here are missing, if not 0
}

func newOutbox(keep int) *outbox {
	return &outbox{keep: keep, filled: make(chan struct{}, 1)}
}

// put adds the table and the losses of one step, which belong together. The
// table is nil if it has not changed.
func (o *outbox) put(t *table.Table, losses []leasehold.Loss) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t != nil {
		o.table = t
	}
	o.losses = append(o.losses, losses...)
	if over := len(o.losses) - o.keep; over > 0 {
		o.dropped = o.losses[over-1].LSN
		o.losses = append([]leasehold.Loss(nil), o.losses[over:]...)
	}
	select {
	case o.filled <- struct{}{}:
	default:
	}
}

// take empties the outbox.
func (o *outbox) take() (t *table.Table, losses []leasehold.Loss, dropped leasehold.LSN) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t, losses, dropped = o.table, o.losses, o.dropped
	o.table, o.losses, o.dropped = nil, nil, 0
	return t, losses, dropped
}

// publish makes known what is in the outbox until the context ends. Tables that
// come while one is being indexed are skipped but for the newest; their losses
// are not.
func (l *Lookup) publish(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.outbox.filled:
		}
		failpoint.Here("lookup/before-publishing")
		t, losses, dropped := l.outbox.take()
		old := l.current.Load()
		now := old
		if t != nil {
			now = newSnapshot(t)
			l.current.Store(now)
		}
		failpoint.Here("lookup/published-before-losses")
		// The losses come after the table: who hears of one looks for the key.
		l.losses.append(now.table, losses, dropped)
		switch {
		case old == nil:
			close(l.ready)
		case old != now:
			close(old.superseded)
		}
	}
}

// tellLosses passes losses to the application until the context ends.
func (l *Lookup) tellLosses(ctx context.Context, at cursor, tell func([]leasehold.Loss)) {
	for ctx.Err() == nil {
		batch, more := l.losses.read(&at)
		if len(batch) > 0 {
			tell(batch)
			continue
		}
		select {
		case <-more:
		case <-ctx.Done():
		}
	}
}
