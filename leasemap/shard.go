package leasemap

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// A shard contains the names whose keys have the same prefix, so that a range is in few
// shards.
type shard[V any] struct {
	mu      sync.Mutex
	entries map[string]*entry[V]
	copies  []*copied[V]

	exports atomic.Int32  // len(copies)
	writes  atomic.Uint64 // number of writes
	_       [8]byte       // pads to a cache line
}

const (
	shardBits  = 12
	shardCount = 1 << shardBits
)

func (m *Map[V]) shard(key leasehold.Key) *shard[V] { return &m.shards[shardOf(key)] }

func shardOf(key leasehold.Key) int { return int(key >> (64 - shardBits)) }

// An entry is a name and its value. Its lock protects the fields without another comment. With write-behind, writers of
// the value also hold the shard's lock, so that the flusher does not wait for operations.
//
// An entry may be removed from its shard at any time, because its lease has ended or
// because the name has arrived with a value in a later tenure: the removal does not wait for
// an operation of an earlier tenure. That operation continues with its entry, and its call of
// Held fails. This is correct because an operation checks its lease
// and then whether its entry is still in the shard, and because the values of a tenure are
// installed before any check in it succeeds.
type entry[V any] struct {
	entryLock
	// generation is the generation of the last operation's lease. Writers hold the entry's
	// lock and the shard's lock, readers one of the two.
	generation leasehold.Generation
	removed    atomic.Bool  // from its shard; written under the shard's lock
	attended   atomic.Bool  // a resident runs
	used       atomic.Bool  // since the eviction or the sweeper has examined it
	expires    atomic.Int64 // on the map's clock, a [time.Duration]; 0 means never

	state atomic.Uint32 // in write-behind: clean, unsaved, ...
	known bool          // the value, or that there is none, is that of the store; only with a store

	alarm atomic.Pointer[alarm[V]] // nil without one; written under the entry's lock

	version Version // zero without a value
	value   V
}

func (e *entry[V]) clear() {
	var zero V
	e.value, e.version = zero, Version{}
	e.expires.Store(0)
}

// forget makes the next operation load the value.
func (e *entry[V]) forget() {
	e.clear()
	e.known = false
}

// ttl returns the remaining TTL, 0 for a value that does not expire.
func (e *entry[V]) ttl(now time.Duration) time.Duration {
	if at := e.expires.Load(); at != 0 {
		return time.Duration(at) - now
	}
	return 0
}

func (e *entry[V]) expired(now time.Duration) bool {
	at := e.expires.Load()
	return at != 0 && int64(now) >= at
}

// setTTL restarts the TTL; 0 means that the value does not expire, and a negative TTL removes
// it.
func (e *entry[V]) setTTL(now, ttl time.Duration) {
	switch {
	case ttl == 0 || ttl > math.MaxInt64-now:
		e.expires.Store(0)
	case ttl < 0:
		e.clear()
	default:
		e.expires.Store(int64(now + ttl))
	}
}

func (s *shard[V]) find(name string) *entry[V] {
	s.mu.Lock()
	e := s.entries[name]
	s.mu.Unlock()
	return e
}

// acquire returns the locked entry of a name, a new one if there is none.
func (m *Map[V]) acquire(ctx context.Context, s *shard[V], key leasehold.Key, name, op string) (*entry[V], error) {
	for {
		e := s.find(name)
		if e == nil {
			var err error
			if e, err = m.add(s, key, name, op); err != nil {
				return nil, err
			}
		}
		if err := e.lock(ctx, &s.mu); err != nil {
			return nil, leasehold.Errorf(op, leasehold.ErrUnavailable, name, "nothing was done: another operation on the name is running: %w", err)
		}
		if !e.removed.Load() {
			return e, nil
		}
		e.unlock(&s.mu) // removed meanwhile
	}
}

// add adds an entry for a name, if this server owns it and the map is not full. Requests for
// names of other servers must not occupy memory.
func (m *Map[V]) add(s *shard[V], key leasehold.Key, name, op string) (*entry[V], error) {
	if _, ok := m.leases.Check(key); !ok && !m.cfg.Weak {
		return nil, m.refuse(op, name, key, notOwned)
	}
	for {
		if e := m.insert(s, name); e != nil {
			return e, nil
		}
		if !m.evicts() || !m.evict() {
			return nil, leasehold.Errorf(op, leasehold.ErrLimit, name, "nothing was done: the map has %d names already", m.cfg.Max)
		}
	}
}

// insert returns the entry of a name, a new one if there is none, and nil if the map is full.
func (m *Map[V]) insert(s *shard[V], name string) *entry[V] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[name]; e != nil { // inserted by another goroutine
		return e
	}
	if !m.reserve(1) { // under the lock, under which a removed name frees its place
		return nil
	}
	if s.entries == nil {
		s.entries = make(map[string]*entry[V])
	}
	e := &entry[V]{}
	s.entries[name] = e
	return e
}

func (m *Map[V]) reserve(n int) bool {
	if m.count.Add(int64(n)) > int64(m.cfg.Max) {
		m.count.Add(-int64(n))
		return false
	}
	return true
}

// release unlocks an entry, and removes it if it has no value. That a name has none in the store stays known.
func (m *Map[V]) release(s *shard[V], name string, e *entry[V]) {
	m.updateResident(e, name)
	if !e.version.Exists() {
		m.setAlarm(e, name, time.Time{})
	}
	if !e.version.Exists() && !e.known {
		s.mu.Lock()
		m.remove(s, name, e)
		s.mu.Unlock()
	}
	e.unlock(&s.mu)
}

// remove removes an entry from its shard. The shard's lock is held.
func (m *Map[V]) remove(s *shard[V], name string, e *entry[V]) {
	if e.removed.Load() {
		return
	}
	e.removed.Store(true)
	m.endResident(e, name)
	m.alarms.drop(e)
	m.count.Add(-1)
	if delete(s.entries, name); len(s.entries) == 0 {
		s.entries = nil // maps do not shrink
	}
}

// discardOld discards the state of an earlier tenure, and sets the generation. It
// reports false if the entry was removed from its shard. It removes one that may be unsaved: write-behind
// saves it with its own generation.
func (s *shard[V]) discardOld(m *Map[V], name string, e *entry[V], g leasehold.Generation) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.known {
		m.remove(s, name, e)
	}
	if e.removed.Load() {
		return false
	}
	e.clear()
	m.setAlarm(e, name, time.Time{})
	e.generation = g
	return true
}

// An entryLock serializes the operations on a name. A waiter can stop waiting when its
// context ends. Without contention it costs the same as a mutex. Waiters block on
// a channel, so that a virtual clock can advance.
//
// The shard's lock, which is held only briefly, protects the list of waiters.
type entryLock struct {
	locked  atomic.Bool
	waiting atomic.Int32     // len(waiters), or one more during lock
	waiters *[]chan struct{} // nil before the first waiter: an entry should fit into a cache line
}

func (t *entryLock) tryLock() bool { return t.locked.CompareAndSwap(false, true) }

// lock waits for the lock. It fails when the context ends.
func (t *entryLock) lock(ctx context.Context, mu *sync.Mutex) error {
	if t.tryLock() {
		return nil
	}
	mu.Lock()
	t.waiting.Add(1)
	// unlock reads waiting after it has released the lock. So either this tryLock
	// succeeds, or unlock finds the waiter.
	if t.tryLock() {
		t.waiting.Add(-1)
		mu.Unlock()
		return nil
	}
	own := make(chan struct{})
	if t.waiters == nil {
		t.waiters = new([]chan struct{})
	}
	*t.waiters = append(*t.waiters, own)
	mu.Unlock()
	select {
	case <-own:
		return nil
	case <-ctx.Done():
	}
	mu.Lock()
	if i := slices.Index(*t.waiters, own); i >= 0 {
		*t.waiters = slices.Delete(*t.waiters, i, i+1)
		t.waiting.Add(-1)
		mu.Unlock()
		return context.Cause(ctx)
	}
	mu.Unlock()
	t.unlock(mu) // the lock was passed to this waiter at the same time
	return context.Cause(ctx)
}

// unlock releases the lock, and passes it to the first waiter.
func (t *entryLock) unlock(mu *sync.Mutex) {
	t.locked.Store(false)
	if t.waiting.Load() == 0 {
		return
	}
	mu.Lock()
	defer mu.Unlock()
	t.wakeNext()
}

// wakeNext passes the lock to the first waiter, unless it was taken meanwhile. The shard's lock is held.
func (t *entryLock) wakeNext() {
	if t.waiters != nil && len(*t.waiters) > 0 && t.tryLock() {
		first := (*t.waiters)[0]
		*t.waiters = (*t.waiters)[1:]
		t.waiting.Add(-1)
		close(first)
	}
}

// A sweep over all shards takes one TTL, within these limits, in sweepSteps steps.
const (
	minSweep   = 8 * time.Second
	maxSweep   = time.Minute
	sweepSteps = 64
)

// run executes the background work of the map until the context ends.
func (m *Map[V]) run(ctx context.Context) {
	var others sync.WaitGroup
	if m.unsaved != nil {
		others.Go(func() { m.runSaver(ctx) })
	}
	if m.residents != nil {
		others.Go(func() { m.runResidents(ctx) })
	}
	m.runSweeper(ctx)
	others.Wait()
}

// runSweeper removes expired values, some shards per step, until the context ends.
func (m *Map[V]) runSweeper(ctx context.Context) {
	pass := maxSweep
	if m.cfg.TTL > 0 {
		pass = min(max(m.cfg.TTL, minSweep), maxSweep)
	}
	tick := time.NewTicker(pass / sweepSteps)
	defer tick.Stop()
	for step := 0; ; step = (step + 1) % sweepSteps {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		const each = shardCount / sweepSteps
		m.sweep(step*each, (step+1)*each)
	}
}

func (m *Map[V]) sweep(from, to int) {
	for i := from; i < to; i++ {
		m.shards[i].sweep(m)
	}
}

// Sweep removes all expired values, and names of which it is known that they have no value, in time linear in the number of values. It blocks operations
// in one shard, of 4,096, at a time. A map of Join calls it regularly.
func (m *Map[V]) Sweep() { m.sweep(0, shardCount) }

func (s *shard[V]) sweep(m *Map[V]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := m.now()
	for name, e := range s.entries {
		if !e.expired(now) && m.cfg.Store == nil || !e.tryLock() {
			continue // not expired, or in use
		}
		switch {
		case e.state.Load() != clean: // write-behind needs it
		case !e.version.Exists(): // known to have no value
			m.remove(s, name, e)
		case e.expired(now):
			s.markChangedLocked(m.cfg.Key(name), name) // otherwise the target would restore the value
			m.remove(s, name, e)
		}
		e.locked.Store(false)
		e.wakeNext()
	}
}
