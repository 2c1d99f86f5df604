package leasemap

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// WriteBehind makes a map save values after the operations that have changed them have returned, in
// batches. A crash then loses changes, but never more than those of one MaxAge, and it does not lose
// those that moved before. Values are also saved before a move, and at Close.
type WriteBehind struct {
	// Interval is the time after which a changed value is saved. Default 1 s.
	Interval time.Duration
	// Batch is the maximum number of values in one call of the store, fewer if they are large or after a failure. As many
	// are saved at once, without waiting for Interval. Default 500.
	Batch int

	// MaxAge is the window of loss. While a change is unsaved for longer, because the store is slow or
	// not available, operations that could change a value wait until their context ends. Default 10 s.
	MaxAge time.Duration
	// Max limits the number of unsaved names in the same way. Default 10,000, at most half of Config.Max.
	Max int

	// OnLost is called with the names of changes that were acknowledged and will not be saved: a later
	// owner has used the name, the value cannot be encoded, or the map was closed before the store had
	// it. It must be fast and not change the map: a change may wait for the flusher, which calls OnLost. It is required.
	OnLost func(names []string, err error)
}

func (w *WriteBehind) validate(maxNames int) error {
	w.Interval, w.Batch = cmp.Or(w.Interval, time.Second), cmp.Or(w.Batch, 500)
	w.MaxAge, w.Max = cmp.Or(w.MaxAge, 10*time.Second), min(cmp.Or(w.Max, 10_000), max(1, maxNames/2))
	switch {
	case w.OnLost == nil:
		return leasehold.Errorf(opNew, leasehold.ErrInvalid, "", "WriteBehind.OnLost is not set: a crash of the store loses acknowledged changes, which must be reported")
	case w.Interval < 0 || w.Batch < 0 || w.Max < 0 || w.MaxAge < w.Interval:
		return leasehold.Errorf(opNew, leasehold.ErrInvalid, "", "WriteBehind: Interval is %v, MaxAge %v, Batch %d, Max %d: want more than 0, and MaxAge at least Interval", w.Interval, w.MaxAge, w.Batch, w.Max)
	}
	return nil
}

// The states of an entry in write-behind. Operations, which hold the entry's and the shard's locks, go from clean to
// unsaved, and from saving to changed. The flusher goes from unsaved to saving under the shard's lock, and later
// to clean, or back to unsaved.
const (
	clean   = iota
	unsaved // in the queue
	saving  // in the queue's first batch
	changed // in the first batch, and again in the queue because it has changed since
)

// A queued entry has a change that is not saved.
type queued[V any] struct {
	shard *shard[V]
	entry *entry[V]
	name  string
	since time.Duration // the change, on the map's clock
}

// A queue has the unsaved entries of a map, the oldest first, except for those that have arrived by a move.
// Batches stay in the queue until they are saved.
type queue[V any] struct {
	flushing chan struct{} // semaphore of the flusher
	limit    int           // of records in a call of the store; only the flusher uses it
	wake     chan struct{} // of the flusher, when there is a first entry or a batch

	count  atomic.Int64 // len(items)
	oldest atomic.Int64 // minimum of since, plus 1; 0 if the queue is empty

	mu    sync.Mutex
	items []queued[V]
	freed chan struct{} // closed after the next attempt to save a batch
}

func newQueue[V any](limit int) *queue[V] {
	return &queue[V]{limit: limit, flushing: make(chan struct{}, 1), wake: make(chan struct{}, 1), freed: make(chan struct{})}
}

// markUnsaved queues an entry that has changed. Its lock, unless it is new, and the shard's are held.
func (m *Map[V]) markUnsaved(s *shard[V], e *entry[V], name string, since time.Duration) {
	if !e.change() {
		return // it is in the queue
	}
	q, since := m.unsaved, max(0, since)
	q.mu.Lock()
	q.items = append(q.items, queued[V]{s, e, name, since})
	n := q.count.Add(1)
	if oldest := q.oldest.Load(); oldest == 0 || int64(since) < oldest {
		q.oldest.Store(int64(since) + 1)
	}
	q.mu.Unlock()
	if n == 1 || n == int64(m.behind.Batch) {
		q.rouse()
	}
}

// change reports whether the entry must be added to the queue.
func (e *entry[V]) change() bool {
	return e.state.CompareAndSwap(clean, unsaved) || e.state.CompareAndSwap(saving, changed) || e.state.CompareAndSwap(clean, unsaved)
}

func (q *queue[V]) rouse() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// admit waits until the queue has room for a change and no change is too old. It does not wait for names of other servers.
func (m *Map[V]) admit(ctx context.Context, key leasehold.Key, name string) error {
	q := m.unsaved
	for m.congested() {
		if _, ok := m.leases.Check(key); !ok {
			return m.refuse(opUpdate, name, key, notOwned)
		}
		q.mu.Lock()
		freed := q.freed
		q.mu.Unlock()
		if !m.congested() {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return leasehold.Errorf(opUpdate, leasehold.ErrUnavailable, name, "nothing was done: %d changes wait for the store, the oldest for %v: %w", q.count.Load(), m.unsavedFor(), context.Cause(ctx))
		}
	}
	return nil
}

func (m *Map[V]) congested() bool {
	return m.unsaved.count.Load() >= int64(m.behind.Max) || m.unsavedFor() > m.behind.MaxAge
}

// unsavedFor returns the age of the oldest unsaved change.
func (m *Map[V]) unsavedFor() time.Duration {
	if oldest := m.unsaved.oldest.Load(); oldest != 0 {
		return m.now() - time.Duration(oldest-1)
	}
	return 0
}

// Unsaved returns the number of changes that write-behind has not saved, and the age of the oldest.
func (m *Map[V]) Unsaved() (names int, oldest time.Duration) {
	if m.unsaved == nil {
		return 0, 0
	}
	return int(m.unsaved.count.Load()), m.unsavedFor()
}
