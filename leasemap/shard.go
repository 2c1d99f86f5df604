package leasemap

import (
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
	_       [64]byte      // neighbours do not share a cache line
}

const (
	shardBits  = 12
	shardCount = 1 << shardBits
)

func (m *Map[V]) shard(key leasehold.Key) *shard[V] { return &m.shards[shardOf(key)] }

func shardOf(key leasehold.Key) int { return int(key >> (64 - shardBits)) }

// An entry is a name and its value. Its lock is taken before its shard's.
type entry[V any] struct {
	mu         sync.Mutex
	generation leasehold.Generation // of the lease under which it was last touched
	version    Version              // zero: there is no value
	expires    time.Duration        // on the map's clock; 0 never
	value      V
	gone       bool // no longer in its shard
}

func (e *entry[V]) clear() {
	var zero V
	e.value, e.version, e.expires = zero, Version{}, 0
}

func (e *entry[V]) expired(now time.Duration) bool { return e.expires != 0 && now >= e.expires }

// find returns the entry of a name, nil if there is none.
func (s *shard[V]) find(name string) *entry[V] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.entries[name]
}

// take returns the entry of a name, locked; a new one if there is none. Whether there is
// to be one is not known before the lease is checked, so the lease is looked at first:
// requests for what others own must not take up room.
func (m *Map[V]) take(s *shard[V], key leasehold.Key, name string) (*entry[V], error) {
	for {
		e := s.find(name)
		if e == nil {
			var err error
			if e, err = m.add(s, key, name); err != nil {
				return nil, err
			}
		}
		e.mu.Lock()
		if !e.gone {
			return e, nil
		}
		e.mu.Unlock() // it was removed while we waited
	}
}

// add makes an entry for a name, if this server owns it and there is room.
func (m *Map[V]) add(s *shard[V], key leasehold.Key, name string) (*entry[V], error) {
	if _, ok := m.leases.Check(key); !ok && !m.cfg.Weak {
		return nil, leasehold.Errorf(opUpdate, leasehold.NotOwner, name, "another server has it, or nobody does")
	}
	if m.count.Add(1) > int64(m.cfg.Max) {
		m.count.Add(-1)
		return nil, leasehold.Errorf(opUpdate, leasehold.Limit, name, "the map has %d names already", m.cfg.Max)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[name]; e != nil { // another was faster
		m.count.Add(-1)
		return e, nil
	}
	if s.entries == nil {
		s.entries = make(map[string]*entry[V])
	}
	e := &entry[V]{}
	s.entries[name] = e
	return e, nil
}

// put unlocks an entry, and removes it if it has no value.
func (m *Map[V]) put(s *shard[V], name string, e *entry[V]) {
	if !e.version.Exists() {
		m.remove(s, name, e)
	}
	e.mu.Unlock()
}

// remove takes a locked entry out of its shard.
func (m *Map[V]) remove(s *shard[V], name string, e *entry[V]) {
	if e.gone {
		return
	}
	e.gone = true
	s.mu.Lock()
	delete(s.entries, name)
	s.mu.Unlock()
	m.count.Add(-1)
}
