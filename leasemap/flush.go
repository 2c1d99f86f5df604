package leasemap

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
)

const (
	opFlush = "flush map"

	concurrentSaves = 2 // calls of the store with a batch each
	forever         = time.Duration(1<<63 - 1)
)

// Flush saves the changes that write-behind has not saved, as the map does before a move and at Close. It
// returns the first error of the store. Without [WriteBehind] there is nothing to save.
func (m *Map[V]) Flush(ctx context.Context) error {
	if m.unsaved == nil {
		return nil
	}
	for left := int(m.unsaved.count.Load()); left > 0; {
		n, err := m.flushBatch(ctx, true)
		if err != nil {
			return leasehold.Errorf(opFlush, leasehold.ErrUnavailable, "", "%d changes are not saved: %w", m.unsaved.count.Load(), err)
		}
		if n == 0 {
			break
		}
		left -= n
	}
	return nil
}

// runSaver saves changes until the context ends.
func (m *Map[V]) runSaver(ctx context.Context) {
	timer := time.NewTimer(forever)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.unsaved.wake:
		case <-timer.C:
		}
		wait := m.untilDue()
		for wait <= 0 {
			if n, err := m.flushBatch(ctx, false); n == 0 || err != nil {
				wait = m.cfg.WriteBehind.Interval // before the next attempt
				break
			}
			wait = m.untilDue()
		}
		timer.Reset(wait)
	}
}

// untilDue returns the time until the next batch.
func (m *Map[V]) untilDue() time.Duration {
	switch n := m.unsaved.count.Load(); {
	case n == 0:
		return forever
	case n >= int64(m.cfg.WriteBehind.Batch):
		return 0
	}
	return m.cfg.WriteBehind.Interval - m.unsavedFor()
}

// A batch is the first part of the queue: the batches of the next calls of the store.
type batch[V any] struct {
	queued  int          // number of items of the queue
	saving  []pending[V] // sorted by name
	later   []queued[V]  // are in use by an operation
	invalid []lostChange // cannot be saved
}

// pending is an entry in a batch.
type pending[V any] struct {
	queued[V]
	Record
}

// lostChange is an acknowledged change that will not be saved.
type lostChange struct {
	name string
	err  error
}

// flushBatch saves a batch, and returns the number of items that have left the queue. If wait is set it waits for
// operations that use an entry.
func (m *Map[V]) flushBatch(ctx context.Context, wait bool) (int, error) {
	select {
	case m.unsaved.flushing <- struct{}{}:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	defer func() { <-m.unsaved.flushing }()
	b, err := m.takeBatch(ctx, wait)
	if err == nil {
		err = m.saveBatch(ctx, b)
	}
	if err != nil {
		for _, p := range b.saving {
			p.entry.state.Store(unsaved)
		}
		return 0, err
	}
	m.dequeue(b)
	for _, l := range b.invalid {
		m.cfg.WriteBehind.OnLost([]string{l.name}, l.err)
	}
	return b.queued - len(b.later), nil
}

// takeBatch encodes the first entries of the queue, up to one whose name is in the batch already: an entry of an
// earlier tenure.
func (m *Map[V]) takeBatch(ctx context.Context, wait bool) (*batch[V], error) {
	q, b := m.unsaved, new(batch[V])
	q.mu.Lock()
	items := q.items[:min(len(q.items), concurrentSaves*m.cfg.WriteBehind.Batch)]
	q.mu.Unlock()
	taken := make(map[string]bool, len(items))
	for _, item := range items {
		if taken[item.name] {
			break
		}
		taken[item.name] = true
		b.queued++
		if !item.entry.tryLock() {
			if !wait {
				b.later = append(b.later, item)
				continue
			}
			if err := item.entry.lock(ctx, &item.shard.mu); err != nil {
				return b, err
			}
		}
		m.take(b, item)
		item.entry.unlock(&item.shard.mu)
	}
	slices.SortFunc(b.saving, func(a, b pending[V]) int { return cmp.Compare(a.Name, b.Name) })
	return b, nil
}

// take encodes a locked entry, unless it is clean: its second item in the queue, or its lease has moved.
func (m *Map[V]) take(b *batch[V], item queued[V]) {
	e := item.entry
	if !e.state.CompareAndSwap(unsaved, saving) {
		return
	}
	r := Record{Name: item.name, Key: m.cfg.Key(item.name), Token: m.token(item.shard, e.generation)}
	if now := m.now(); e.version.Exists() && !e.expired(now) {
		r.Version, r.TTL, r.Alarm = e.version, e.ttl(now), e.alarmAt()
		if err := m.encodeInto(&r, &e.value); err != nil {
			e.state.Store(clean)
			b.invalid = append(b.invalid, lostChange{item.name, err})
			return
		}
	}
	b.saving = append(b.saving, pending[V]{item, r})
}

// saveBatch saves a batch and sets the states of its entries.
func (m *Map[V]) saveBatch(ctx context.Context, b *batch[V]) error {
	if len(b.saving) == 0 {
		return nil
	}
	refused, err := m.saveAll(ctx, b)
	if err != nil {
		return err
	}
	for _, p := range b.saving {
		if slices.Contains(refused, p.Name) {
			m.refused(b, p)
			continue
		}
		if !p.entry.state.CompareAndSwap(saving, clean) {
			p.entry.state.CompareAndSwap(changed, unsaved)
		}
	}
	return nil
}

// saveAll calls the store with all records, several times at once, and returns the refused names.
func (m *Map[V]) saveAll(ctx context.Context, b *batch[V]) (refused []string, err error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for part := range slices.Chunk(b.records(), m.cfg.WriteBehind.Batch) {
		all.Go(func() {
			r, invalid, failed := m.saveRecords(ctx, part)
			mu.Lock()
			defer mu.Unlock()
			refused, b.invalid, err = append(refused, r...), append(b.invalid, invalid...), errors.Join(err, failed)
		})
	}
	all.Wait()
	return refused, err
}

func (b *batch[V]) records() []Record {
	records := make([]Record, len(b.saving))
	for i, p := range b.saving {
		records[i] = p.Record
	}
	return records
}

// saveRecords calls the store's Save. If the store rejects the batch as invalid, it finds the invalid records.
func (m *Map[V]) saveRecords(ctx context.Context, records []Record) (refused []string, invalid []lostChange, err error) {
	saving, cancel := context.WithTimeout(ctx, m.cfg.StoreTimeout)
	defer cancel()
	refused, err = m.cfg.Store.Save(saving, records)
	switch kind := leasehold.KindOf(err); {
	case err == nil || kind != leasehold.ErrInvalid && kind != leasehold.ErrLimit:
		return refused, nil, err
	case len(records) == 1:
		return nil, []lostChange{{records[0].Name, err}}, nil
	}
	for i := range records {
		r, l, err := m.saveRecords(ctx, records[i:i+1])
		if err != nil {
			return nil, nil, err
		}
		refused, invalid = append(refused, r...), append(invalid, l...)
	}
	return refused, invalid, nil
}

// refused handles a change that the store has refused, because a later owner has used the name. Until this server
// has learned whether the value has moved there, the change stays in the queue.
func (m *Map[V]) refused(b *batch[V], p pending[V]) {
	e := p.entry
	lease, held := m.leases.Check(m.cfg.Key(p.name))
	switch {
	case e.state.Load() == clean: // it has moved
	case e.removed.Load() || held && lease.Generation == p.Token.Generation:
		e.state.Store(clean)
		p.shard.discard(m, p.name, e)
		b.invalid = append(b.invalid, lostChange{p.name, leasehold.Errorf(opFlush, leasehold.ErrStale, p.name, "%s", superseded)})
	default:
		e.state.Store(unsaved)
		b.later = append(b.later, p.queued)
	}
}

// discard removes an entry that must not be used any more. It does not wait for operations on it.
func (s *shard[V]) discard(m *Map[V], name string, e *entry[V]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.remove(s, name, e)
}

// dequeue removes a batch from the queue.
func (m *Map[V]) dequeue(b *batch[V]) {
	q := m.unsaved
	q.mu.Lock()
	defer q.mu.Unlock()
	clear(q.items[:b.queued]) // releases the entries
	q.items = q.items[b.queued:]
	for _, item := range b.later {
		item.since = m.now()
		q.items = append(q.items, item)
	}
	q.count.Store(int64(len(q.items)))
	oldest := int64(0)
	if len(q.items) > 0 {
		first := slices.MinFunc(q.items, func(a, b queued[V]) int { return cmp.Compare(a.since, b.since) })
		oldest = int64(first.since) + 1
	}
	q.oldest.Store(oldest)
	close(q.freed)
	q.freed = make(chan struct{})
}

// settle saves all changes, if the store is available.
func (m *Map[V]) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.StoreTimeout)
	defer cancel()
	_ = m.Flush(ctx) // the rest moves unsaved, or Close reports it
}

// finish saves the changes that have not moved, after the last operation, and reports the rest as lost.
func (m *Map[V]) finish(ctx context.Context) error {
	if m.unsaved == nil {
		return nil
	}
	return errors.Join(m.Flush(ctx), m.abandon())
}

// abandon reports the changes that are still in the queue as lost.
func (m *Map[V]) abandon() error {
	q := m.unsaved
	q.mu.Lock()
	var names []string
	for _, item := range q.items {
		if item.entry.state.Swap(clean) != clean {
			names = append(names, item.name)
		}
	}
	q.items = nil
	q.count.Store(0)
	q.oldest.Store(0)
	q.mu.Unlock()
	if len(names) == 0 {
		return nil
	}
	err := leasehold.Errorf(opClose, leasehold.ErrUnavailable, "", "%d acknowledged changes could not be saved, and are lost", len(names))
	m.cfg.WriteBehind.OnLost(names, err)
	return err
}
