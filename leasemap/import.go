package leasemap

import (
	"context"
	"iter"
	"sync"

	"github.com/leasehold-dev/leasehold"
)

// An incoming is a range whose values come: what is used of [owner.Import].
type incoming interface {
	Records() iter.Seq2[[]byte, error]
}

// aside is entries that wait for their lease, by shard. They count as names of the map
// until it is known that they will not be.
type aside[V any] struct {
	m     *Map[V]
	parts map[int]map[string]*entry[V]
	count int
	once  sync.Once // of installing them, or giving them up
}

// receive sets values aside until the lease is here. Of two records of a name the later
// one counts. The context ends if the lease does not come.
func (m *Map[V]) receive(ctx context.Context, in incoming) (install func(leasehold.Lease), err error) {
	a := &aside[V]{m: m, parts: make(map[int]map[string]*entry[V])}
	for data, err := range in.Records() {
		if err == nil {
			err = a.add(data)
		}
		if err != nil {
			a.giveUp()
			return nil, err
		}
	}
	context.AfterFunc(ctx, a.giveUp)
	return a.install, nil
}

func (a *aside[V]) giveUp() {
	a.once.Do(func() { a.m.count.Add(-int64(a.count)) })
}

func (a *aside[V]) add(data []byte) error {
	m := a.m
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
			delete(part, r.name)
			a.count--
			m.count.Add(-1)
		}
		return nil
	}
	e := &entry[V]{version: r.version}
	e.last(m.now(), r.left)
	if err := m.cfg.Decode(r.value, &e.value); err != nil {
		return leasehold.Errorf("import", leasehold.ErrInvalid, r.name, "its value cannot be read: %w", err)
	}
	if !known {
		if !m.reserve(1) {
			return leasehold.Errorf("import", leasehold.ErrLimit, r.name, "the map has %d names already", m.cfg.Max)
		}
		a.count++
	}
	part[r.name] = e
	return nil
}

// install puts what was set aside in its place, as far as the lease covers it. Nobody
// can operate on it yet. It waits for nobody: what operations of an earlier tenure have in
// their hands is replaced under them.
func (a *aside[V]) install(l leasehold.Lease) {
	a.once.Do(func() { // otherwise the move has failed, and the lease is not to be had
		for number, part := range a.parts {
			a.m.shards[number].place(a.m, l, part)
		}
	})
}

// place puts entries into a shard. What is there of an earlier tenure gives way; what is
// there of a later one stays, because then the lease is over already.
func (s *shard[V]) place(m *Map[V], l leasehold.Lease, part map[string]*entry[V]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, e := range part {
		old := s.entries[name]
		if !l.Range.Contains(m.cfg.Key(name)) || old != nil && old.generation > l.Generation {
			m.count.Add(-1)
			continue
		}
		if old != nil {
			m.remove(s, name, old)
		}
		if s.entries == nil { // also if that was the last one
			s.entries = make(map[string]*entry[V], len(part))
		}
		e.generation = l.Generation
		s.entries[name] = e
	}
}

// Revoked is for [owner.Config].OnRevoke: it frees the memory of values whose lease has
// ended. They have not been served since. A weak map keeps them until they expire. It waits
// for nobody.
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
	defer s.mu.Unlock()
	for name, e := range s.entries {
		if e.generation <= l.Generation && l.Range.Contains(m.cfg.Key(name)) {
			m.remove(s, name, e)
		}
	}
}
