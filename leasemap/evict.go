package leasemap

// Eviction is the clock algorithm, an approximation of least recently used: a hand passes over the shards, and in
// each over some entries. It evicts those that no operation has used since the hand was there before.
const (
	examinedPerShard = 64 // bounds the time of a shard's lock
	evictedPerShard  = 16
	maxRounds        = 4 // of the hand, before the map is full
)

// evicts reports whether the map evicts values. Values in a Store can be loaded again.
func (m *Map[V]) evicts() bool { return m.cfg.Evict || m.cfg.Store != nil }

// room reserves memory for a name. It evicts others if the map is full.
func (m *Map[V]) room() bool {
	for !m.reserve(1) {
		if !m.evicts() || !m.evict() {
			return false
		}
	}
	return true
}

// An evicted value is an argument of Config.OnEvict.
type evicted[V any] struct {
	name  string
	value V
}

// evict evicts entries of one shard. It reports false if it found none in all shards.
func (m *Map[V]) evict() bool {
	for range maxRounds * shardCount {
		values, n := m.shards[m.hand.Add(1)%shardCount].evict(m)
		if m.cfg.OnEvict != nil {
			for _, v := range values {
				m.cfg.OnEvict(v.name, v.value)
			}
		}
		if n > 0 {
			return true
		}
	}
	return false
}

// evict removes entries that are neither recently used, nor in use, nor unsaved, and have no resident. It returns their number, and
// those with a value.
func (s *shard[V]) evict(m *Map[V]) (values []evicted[V], n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	examined := 0
	for name, e := range s.entries { // begins anywhere
		if examined++; examined > examinedPerShard || n == evictedPerShard {
			break
		}
		if e.used.Swap(false) || e.attended.Load() || !e.tryLock() {
			continue
		}
		if e.state.Load() == clean {
			n++
			if e.version.Exists() {
				values = append(values, evicted[V]{name, e.value})
			}
			m.remove(s, name, e)
		}
		e.locked.Store(false)
		e.wakeNext()
	}
	return values, n
}

// use marks an entry as recently used, if it has a value: requests for random names must not evict values. A load of a
// shared cache line is cheaper than a store.
func (e *entry[V]) use() {
	if e.version.Exists() && !e.used.Load() {
		e.used.Store(true)
	}
}
