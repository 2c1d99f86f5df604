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

// A shard has the names whose keys begin alike, so that those of a range lie in few
// shards.
type shard[V any] struct {
	mu      sync.Mutex
	entries map[string]*entry[V]
	copies  []*copied[V]

	exports atomic.Int32  // len(copies)
	writes  atomic.Uint64 // so far
	_       [8]byte       // a cache line for each, which it does not share with its neighbours
}

const (
	shardBits  = 12
	shardCount = 1 << shardBits
)

func (m *Map[V]) shard(key leasehold.Key) *shard[V] { return &m.shards[shardOf(key)] }

func shardOf(key leasehold.Key) int { return int(key >> (64 - shardBits)) }

// An entry is a name and its value. What is not said to be otherwise belongs to whoever
// has the turn.
//
// An entry may be taken out of its shard at any time, because its lease has ended or
// because the name has come back with a value: nobody waits for an operation of an earlier
// tenure. That operation goes on with what it has, and finds in the end that its lease was
// not held. What it takes for this to be right: an operation that has checked its lease
// then looks whether its entry is still in its place. The values of a tenure are put in
// their place before any check in it succeeds.
type entry[V any] struct {
	turn
	// generation is that of the lease under which it was last touched. It is changed by
	// whoever has the turn and the shard's lock, and may be read with either.
	generation leasehold.Generation
	gone       atomic.Bool  // no longer in its shard; set under the shard's lock
	expires    atomic.Int64 // on the map's clock, a [time.Duration]; 0 never

	version Version // zero: there is no value
	value   V
}

func (e *entry[V]) clear() {
	var zero V
	e.value, e.version = zero, Version{}
	e.expires.Store(0)
}

func (e *entry[V]) expired(now time.Duration) bool {
	at := e.expires.Load()
	return at != 0 && int64(now) >= at
}

// last lets the value last for a time from now on; 0 is for ever. A time that is over
// already ends it.
func (e *entry[V]) last(now, ttl time.Duration) {
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

// take returns the entry of a name, with the turn to operate on it; a new one if there is
// none.
func (m *Map[V]) take(ctx context.Context, s *shard[V], key leasehold.Key, name, op string) (*entry[V], error) {
	for {
		e := s.find(name)
		if e == nil {
			var err error
			if e, err = m.add(s, key, name, op); err != nil {
				return nil, err
			}
		}
		if err := e.take(ctx, &s.mu); err != nil {
			return nil, leasehold.Errorf(op, leasehold.ErrUnavailable, name, "nothing was done: another operation on the name goes on: %w", err)
		}
		if !e.gone.Load() {
			return e, nil
		}
		e.give(&s.mu) // it was removed while we waited
	}
}

// add makes an entry for a name, if this server owns it and there is room. Requests for
// what others own must not take up room.
func (m *Map[V]) add(s *shard[V], key leasehold.Key, name, op string) (*entry[V], error) {
	if _, ok := m.leases.Check(key); !ok && !m.cfg.Weak {
		return nil, m.refuse(op, name, key, elsewhere)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[name]; e != nil { // another was faster
		return e, nil
	}
	if !m.reserve(1) {
		return nil, leasehold.Errorf(op, leasehold.ErrLimit, name, "nothing was done: the map has %d names already", m.cfg.Max)
	}
	if s.entries == nil {
		s.entries = make(map[string]*entry[V])
	}
	e := &entry[V]{}
	s.entries[name] = e
	return e, nil
}

func (m *Map[V]) reserve(n int) bool {
	if m.count.Add(int64(n)) > int64(m.cfg.Max) {
		m.count.Add(-int64(n))
		return false
	}
	return true
}

// put ends an operation, and removes the entry if it has no value.
func (m *Map[V]) put(s *shard[V], name string, e *entry[V]) {
	if !e.version.Exists() {
		s.mu.Lock()
		m.remove(s, name, e)
		s.mu.Unlock()
	}
	e.give(&s.mu)
}

// remove takes an entry out of its shard. The shard's lock is held.
func (m *Map[V]) remove(s *shard[V], name string, e *entry[V]) {
	if e.gone.Load() {
		return
	}
	e.gone.Store(true)
	m.count.Add(-1)
	if delete(s.entries, name); len(s.entries) == 0 {
		s.entries = nil // maps do not shrink
	}
}

// adopt brings an entry into a tenure: what is left of an earlier one is discarded. It
// reports false if the entry is no longer in its place.
func (s *shard[V]) adopt(e *entry[V], g leasehold.Generation) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.gone.Load() {
		return false
	}
	e.clear()
	e.generation = g
	return true
}

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

// A pass over all shards takes as long as values last, between these, in so many steps.
const (
	shortestPass = 8 * time.Second
	longestPass  = time.Minute
	sweepSteps   = 64
)

// sweepAlways removes what has expired, some shards at a time.
func (m *Map[V]) sweepAlways(ctx context.Context) {
	pass := longestPass
	if m.cfg.TTL > 0 {
		pass = min(max(m.cfg.TTL, shortestPass), longestPass)
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

// Sweep removes all that has expired. It looks at every value, and holds up operations
// for no longer than it takes to look at those of a shard, one of 4,096. A map that Join
// has made does this by itself.
func (m *Map[V]) Sweep() { m.sweep(0, shardCount) }

func (s *shard[V]) sweep(m *Map[V]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := m.now()
	for name, e := range s.entries {
		if !e.expired(now) || !e.try() {
			continue // it lasts, or is being used
		}
		if e.expired(now) {
			s.noteLocked(m.cfg.Key(name), name) // or the next owner would show it again
			m.remove(s, name, e)
		}
		e.taken.Store(false)
		e.next()
	}
}
