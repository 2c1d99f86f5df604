package leasemap

import (
	"iter"

	"github.com/leasehold-dev/leasehold"
)

// An incoming is a range whose values come: what is used of [owner.Import].
type incoming interface {
	Records() iter.Seq2[[]byte, error]
}

// aside is entries that wait for their lease, by shard, so that whole shards can be put
// in their place: nobody serves the names meanwhile.
type aside[V any] struct {
	parts map[int]map[string]*entry[V]
	count int
}

// receive sets values aside until the lease is here. Of two records of a name the later
// one counts.
func (m *Map[V]) receive(in incoming) (install func(leasehold.Lease), err error) {
	a := &aside[V]{parts: make(map[int]map[string]*entry[V])}
	for data, err := range in.Records() {
		if err != nil {
			return nil, err
		}
		if err := m.setAside(a, data); err != nil {
			return nil, err
		}
	}
	return func(l leasehold.Lease) { m.install(l, a) }, nil
}

func (m *Map[V]) setAside(a *aside[V], data []byte) error {
	r, err := parseRecord(data)
	if err != nil {
		return err
	}
	number := shardOf(m.cfg.Key(r.name))
	part := a.parts[number]
	if part == nil {
		part = make(map[string]*entry[V])
		a.parts[number] = part
	}
	_, known := part[r.name]
	if r.deleted {
		if known {
			a.count--
			delete(part, r.name)
		}
		return nil
	}
	e := &entry[V]{version: r.version}
	if r.left > 0 {
		e.expires = m.now() + r.left
	}
	if err := m.cfg.Decode(r.value, &e.value); err != nil {
		return leasehold.Errorf("import", leasehold.Invalid, r.name, "its value cannot be read: %w", err)
	}
	if !known {
		a.count++
	}
	if have := m.count.Load() + int64(a.count); have > int64(m.cfg.Max) {
		return leasehold.Errorf("import", leasehold.Limit, r.name, "the map would have %d names, and %d are allowed", have, m.cfg.Max)
	}
	part[r.name] = e
	return nil
}

// install puts what was set aside in its place, as far as the lease covers it. Nobody
// can operate on it yet.
func (m *Map[V]) install(l leasehold.Lease, a *aside[V]) {
	for number, part := range a.parts {
		whole := l.Range.Covers(keysOf(number))
		for name, e := range part {
			if !whole && !l.Range.Contains(m.cfg.Key(name)) {
				delete(part, name)
				continue
			}
			e.generation = l.Generation
		}
		m.shards[number].place(m, part)
	}
}

// place puts entries into a shard. What is there of an earlier tenure is gone.
func (s *shard[V]) place(m *Map[V], part map[string]*entry[V]) {
	for name := range part {
		if old := s.find(name); old != nil {
			old.mu.Lock()
			m.remove(s, name, old)
			old.mu.Unlock()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m.count.Add(int64(len(part)))
	if len(s.entries) == 0 {
		s.entries = part
		return
	}
	for name, e := range part {
		s.entries[name] = e
	}
}

// keysOf is the range of keys of a shard.
func keysOf(number int) leasehold.Range {
	const width = 64 - shardBits
	return leasehold.Range{Start: leasehold.Key(number) << width, Limit: leasehold.Key(number+1) << width}
}

// Revoked is for [owner.Config].OnRevoke: it frees the memory of values whose lease has
// ended. They have not been served since. A weak map keeps them until they expire.
func (m *Map[V]) Revoked(ended []leasehold.Lease, _ leasehold.Cause) {
	if m.cfg.Weak {
		return
	}
	for _, l := range ended {
		for i := shardOf(l.Range.Start); i <= shardOf(l.Range.Last()); i++ {
			m.shards[i].forget(m, l)
		}
	}
}

func (s *shard[V]) forget(m *Map[V], l leasehold.Lease) {
	s.mu.Lock()
	found := make(map[string]*entry[V])
	for name, e := range s.entries {
		if l.Range.Contains(m.cfg.Key(name)) {
			found[name] = e
		}
	}
	s.mu.Unlock()
	for name, e := range found {
		e.mu.Lock()
		if e.generation <= l.Generation {
			m.remove(s, name, e)
		}
		e.mu.Unlock()
	}
}
