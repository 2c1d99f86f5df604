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

	concurrentSaves = 2       // calls of the store
	maxSaveBytes    = 8 << 20 // of the values in one, without the last
	forever         = time.Duration(1<<63 - 1)
)

// Flush saves the changes that write-behind has not saved, as the map does before a move and at Close. It
// returns the first error of the store. Without [WriteBehind] there is nothing to save.
func (m *Map[V]) Flush(ctx context.Context) error {
	if m.unsaved == nil {
		return nil
	}
	var first error
	for left := int(m.unsaved.count.Load()); left > 0; {
		b, err := m.flushBatch(ctx)
		if first == nil {
			first = err
		}
		if b.done() == 0 {
			break
		}
		left -= b.queued
	}
	if first != nil {
		return leasehold.Errorf(opFlush, leasehold.ErrUnavailable, "", "%d changes are not saved: %w", m.unsaved.count.Load(), first)
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
			if b, err := m.flushBatch(ctx); b.done() == 0 || err != nil {
				wait = m.behind.Interval // before the next attempt
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
	case n >= int64(m.behind.Batch):
		return 0
	}
	return m.behind.Interval - m.unsavedFor()
}

// A batch is the first part of the queue: the next calls of the store, at once.
type batch[V any] struct {
	queued  int            // number of items of the queue
	saving  [][]pending[V] // a call each; sorted by name
	later   []queued[V]    // stay in the queue
	invalid []lostChange   // cannot be saved
}

// done returns the number of items that have left the queue.
func (b *batch[V]) done() int { return b.queued - len(b.later) }

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

// flushBatch saves a batch. What the store has not saved goes to the end of the queue.
func (m *Map[V]) flushBatch(ctx context.Context) (*batch[V], error) {
	q := m.unsaved
	select {
	case q.flushing <- struct{}{}:
	case <-ctx.Done():
		return new(batch[V]), context.Cause(ctx)
	}
	defer func() { <-q.flushing }()
	b := m.takeBatch()
	err := m.saveBatch(ctx, b)
	if err == nil {
		q.limit = min(2*q.limit, m.behind.Batch)
	} else {
		q.limit = max(1, q.limit/2) // the call may have been too large
	}
	m.dequeue(b)
	for _, l := range b.invalid {
		m.behind.OnLost([]string{l.name}, l.err)
	}
	return b, err
}

// takeBatch encodes the first entries of the queue, up to one whose name is in the batch already: an entry of an
// earlier tenure.
func (m *Map[V]) takeBatch() *batch[V] {
	q, b := m.unsaved, new(batch[V])
	q.mu.Lock()
	items := q.items
	q.mu.Unlock()
	taken := make(map[string]bool)
	var call []pending[V]
	bytes := 0
	for _, item := range items {
		if taken[item.name] || len(b.saving) == concurrentSaves {
			break
		}
		taken[item.name] = true
		b.queued++
		r, dirty, err := m.take(item)
		if err != nil {
			b.invalid = append(b.invalid, lostChange{item.name, err})
			continue
		}
		if !dirty {
			continue
		}
		call = append(call, pending[V]{item, r})
		if bytes += len(r.Value); len(call) >= q.limit || bytes >= maxSaveBytes {
			b.saving = append(b.saving, call)
			call, bytes = nil, 0
		}
	}
	if len(call) > 0 {
		b.saving = append(b.saving, call)
	}
	for _, call := range b.saving {
		slices.SortFunc(call, func(a, b pending[V]) int { return cmp.Compare(a.Name, b.Name) })
	}
	return b
}

// take encodes an entry, unless it is clean: its second item in the queue, or its lease has moved. It does not wait for
// the entry's lock, which an operation holds while the application's function runs.
func (m *Map[V]) take(item queued[V]) (r Record, dirty bool, err error) {
	e, s := item.entry, item.shard
	s.mu.Lock()
	if !e.state.CompareAndSwap(unsaved, saving) {
		s.mu.Unlock()
		return r, false, nil
	}
	r = Record{Name: item.name, Key: m.cfg.Key(item.name), Token: m.token(s, e.generation)}
	value, now := e.value, m.now()
	exists := e.version.Exists() && !e.expired(now)
	if exists {
		r.Version, r.TTL, r.Alarm = e.version, e.ttl(now), e.alarmAt()
	}
	s.mu.Unlock()
	if exists {
		err = m.encodeInto(&r, &value)
	}
	if err != nil {
		e.saved()
	}
	return r, true, err
}

// saved ends the save of an entry.
func (e *entry[V]) saved() {
	if !e.state.CompareAndSwap(saving, clean) {
		e.state.CompareAndSwap(changed, unsaved)
	}
}

// saveBatch saves a batch and sets the states of its entries.
func (m *Map[V]) saveBatch(ctx context.Context, b *batch[V]) (err error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, call := range b.saving {
		all.Go(func() {
			records := make([]Record, len(call))
			for i, p := range call {
				records[i] = p.Record
			}
			refused, invalid, failed := m.saveRecords(ctx, records)
			mu.Lock()
			defer mu.Unlock()
			err = errors.Join(err, failed)
			b.invalid = append(b.invalid, invalid...)
			for _, p := range call {
				switch {
				case failed != nil:
					b.postpone(p)
				case slices.Contains(refused, p.Name):
					m.refused(b, p)
				default:
					p.entry.saved()
				}
			}
		})
	}
	all.Wait()
	return err
}

// postpone leaves a change in the queue, unless it has moved meanwhile.
func (b *batch[V]) postpone(p pending[V]) {
	if s := &p.entry.state; s.CompareAndSwap(saving, unsaved) || s.CompareAndSwap(changed, unsaved) {
		b.later = append(b.later, p.queued)
	}
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
	lease, held := m.leases.Check(p.Key)
	if !e.removed.Load() && (!held || lease.Generation != p.Token.Generation) {
		b.postpone(p)
		return
	}
	if e.state.Swap(clean) == clean {
		return // it has moved
	}
	p.shard.discard(m, p.name, e)
	b.invalid = append(b.invalid, lostChange{p.name, leasehold.Errorf(opFlush, leasehold.ErrStale, p.name, "%s", superseded)})
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
	taken := min(b.queued, len(q.items)) // fewer after abandon
	clear(q.items[:taken])               // releases the entries
	q.items = q.items[taken:]
	if taken > 0 {
		q.items = append(q.items, b.later...)
	}
	q.count.Store(int64(len(q.items)))
	oldest := int64(0)
	if len(q.items) > 0 {
		first := slices.MinFunc(q.items, func(a, b queued[V]) int { return cmp.Compare(a.since, b.since) })
		oldest = int64(first.since) + 1
	}
	q.oldest.Store(oldest)
	q.free()
}

// free wakes the operations that wait in admit. The queue's lock is held.
func (q *queue[V]) free() {
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
	q.free()
	q.mu.Unlock()
	if len(names) == 0 {
		return nil
	}
	err := leasehold.Errorf(opClose, leasehold.ErrUnavailable, "", "%d acknowledged changes could not be saved, and are lost", len(names))
	m.behind.OnLost(names, err)
	return err
}
