package lookup

import (
	"context"
	"sync"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
)

// An update is the output of one or more steps of the machine: the newest table, and all
// losses since the published one.
type update struct {
	table   *table.Table // nil if unchanged
	losses  []leasehold.Loss
	dropped leasehold.LSN // losses up to here were dropped; 0 if none
	contact *Contact      // the newest, later than the losses; nil if unchanged
}

// An outbox merges the updates that are not published yet. put never waits. It is safe for
// concurrent use.
type outbox struct {
	keep   int
	filled chan struct{} // contains one token while the outbox is not empty

	mu sync.Mutex
	update
}

func newOutbox(keep int) *outbox {
	return &outbox{keep: keep, filled: make(chan struct{}, 1)}
}

// put adds the table, the losses and the contact of one step. The table and the contact are
// nil if unchanged.
func (o *outbox) put(t *table.Table, losses []leasehold.Loss, c *Contact) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t != nil {
		o.table = t
	}
	if c != nil {
		o.contact = c
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
func (o *outbox) take() update {
	o.mu.Lock()
	defer o.mu.Unlock()
	u := o.update
	o.update = update{}
	return u
}

// publish publishes the content of the outbox until the context ends. Of the tables that
// arrive while another is being indexed, only the newest is published, with the losses of
// all.
func (l *Lookup) publish(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.outbox.filled:
		}
		failpoint.Here("lookup/before-publishing")
		u := l.outbox.take()
		old := l.current.Load()
		now := old
		if u.table != nil {
			now = newSnapshot(u.table)
			l.current.Store(now)
		}
		failpoint.Here("lookup/published-before-losses")
		// The losses follow the table, because the reader of a loss looks the keys up.
		u.table = now.table
		l.losses.append(u)
		switch {
		case old == nil:
			close(l.ready)
		case old != now:
			close(old.superseded)
		}
	}
}

// runCallbacks calls OnLoss and OnContact until the Lookup is closed.
func (l *Lookup) runCallbacks(start cursor) {
	lost, contact := l.cfg.OnLoss, l.cfg.OnContact
	if lost == nil {
		lost = func([]leasehold.Loss) {}
	}
	if contact == nil {
		contact = func(Contact) {}
	}
	for batch := range l.reports(l.ctx, start, contact) {
		lost(batch)
	}
}
