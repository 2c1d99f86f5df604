package lookup

import (
	"context"
	"sync"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
)

// news is what the machine has decided and no reader has seen yet: the newest table, and all
// losses on the way to it.
type news struct {
	table   *table.Table // nil if it has not changed
	losses  []leasehold.Loss
	dropped leasehold.LSN // losses up to here are missing, if not 0
	contact *Contact      // the newest, which follows on the losses; nil if it has not changed
}

// An outbox holds news. Who fills it never waits. It may be used from many
// goroutines at once.
type outbox struct {
	keep   int
	filled chan struct{} // holds one token while there is something

	mu sync.Mutex
	news
}

func newOutbox(keep int) *outbox {
	return &outbox{keep: keep, filled: make(chan struct{}, 1)}
}

// put adds the table, the losses and the contact of one step, which belong
// together. The table and the contact are nil if they have not changed.
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
func (o *outbox) take() news {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := o.news
	o.news = news{}
	return n
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
		n := l.outbox.take()
		old := l.current.Load()
		now := old
		if n.table != nil {
			now = newSnapshot(n.table)
			l.current.Store(now)
		}
		failpoint.Here("lookup/published-before-losses")
		// The losses come after the table: who hears of one looks for the key.
		n.table = now.table
		l.losses.append(n)
		switch {
		case old == nil:
			close(l.ready)
		case old != now:
			close(old.superseded)
		}
	}
}

// callBack calls OnLoss and OnContact until the Lookup is closed.
func (l *Lookup) callBack(at cursor) {
	lost, contact := l.cfg.OnLoss, l.cfg.OnContact
	if lost == nil {
		lost = func([]leasehold.Loss) {}
	}
	if contact == nil {
		contact = func(Contact) {}
	}
	for batch := range l.reports(l.ctx, at, contact) {
		lost(batch)
	}
}
