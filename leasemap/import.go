package leasemap

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// An incoming is the part of [owner.Import] that receive uses.
type incoming interface {
	Records() iter.Seq2[[]byte, error]
}

// staged contains the entries of an import that wait for their lease, by shard. They count
// towards Config.Max.
type staged[V any] struct {
	m     *Map[V]
	parts map[int]map[string]*entry[V]
	dirty map[string]time.Duration // unsaved names, with the instants of their changes
	count int
	once  sync.Once // of install or discard
}

// staging is the import of one map.
type staging interface {
	add(record []byte) error
	install(leasehold.Lease)
	discard()
}

func (m *Map[V]) stage() staging {
	return &staged[V]{m: m, parts: make(map[int]map[string]*entry[V]), dirty: make(map[string]time.Duration)}
}

// receive stages values until the lease is granted. Of two records of a name the later
// one counts. The context ends if the lease is not granted.
func (g *Group) receive(ctx context.Context, in incoming) (install func(leasehold.Lease), err error) {
	a := arriving{group: g, maps: make(map[string]staging)}
	for data, err := range in.Records() {
		if err == nil {
			err = a.add(data)
		}
		if err != nil {
			a.discard()
			return nil, err
		}
	}
	context.AfterFunc(ctx, a.discard)
	return a.install, nil
}

// arriving is an import of a group.
type arriving struct {
	group   *Group
	maps    map[string]staging // those with a record
	current string
}

func (a *arriving) add(data []byte) (err error) {
	if isSelect(data) {
		a.current, err = parseSelect(data)
		return err
	}
	s := a.maps[a.current]
	if s == nil {
		m := a.group.maps[a.current]
		if m == nil {
			return leasehold.Errorf(opImport, leasehold.ErrInvalid, a.current, "this server has no map of this name, so the source keeps the range: add the map to its Group")
		}
		s = m.stage()
		a.maps[a.current] = s
	}
	return s.add(data)
}

func (a *arriving) install(l leasehold.Lease) {
	for _, s := range a.maps {
		s.install(l)
	}
}

func (a *arriving) discard() {
	for _, s := range a.maps {
		s.discard()
	}
}

func (a *staged[V]) discard() {
	a.once.Do(func() { a.m.count.Add(-int64(a.count)) })
}

func (a *staged[V]) add(data []byte) error {
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
	delete(a.dirty, r.name)
	if r.deleted && !r.unsaved {
		if known {
			delete(part, r.name)
			a.count--
			m.count.Add(-1)
		}
		return nil
	}
	r.unsaved = r.unsaved || m.unsaved != nil && !r.stored // the source has no store
	if r.unsaved {
		if m.unsaved == nil {
			return leasehold.Errorf(opImport, leasehold.ErrInvalid, r.name, "the change is not saved, and this server has no Store, so the source keeps the range")
		}
		a.dirty[r.name] = m.now() - r.age
	}
	if !r.alarm.IsZero() && m.alarms == nil && !m.cfg.storesAlarms() {
		return leasehold.Errorf(opImport, leasehold.ErrInvalid, r.name, "the value has an alarm, and this server has neither OnAlarm nor an AlarmStore, so the source keeps the range")
	}
	e := &entry[V]{version: r.version, known: m.cfg.Store != nil}
	e.setTTL(m.now(), r.left)
	if !r.alarm.IsZero() {
		e.alarm.Store(&alarm[V]{entry: e, name: r.name, at: r.alarm, next: r.alarm, index: -1})
	}
	if !r.deleted {
		if err := m.cfg.Decode(r.value, &e.value); err != nil {
			return leasehold.Errorf(opImport, leasehold.ErrInvalid, r.name, "the value cannot be decoded: %w", err)
		}
	}
	if !known {
		switch {
		case m.room():
		case m.cfg.Store != nil && !r.unsaved:
			return nil // the first operation loads it
		case !r.unsaved || !a.drop():
			return leasehold.Errorf(opImport, leasehold.ErrLimit, r.name, "the map has %d names already", m.cfg.Max)
		}
		a.count++
	}
	part[r.name] = e
	return nil
}

// drop makes room by removing a staged value that the store has: the first operation loads it.
func (a *staged[V]) drop() bool {
	for _, part := range a.parts {
		for name := range part {
			if _, unsaved := a.dirty[name]; !unsaved {
				delete(part, name)
				a.count--
				return true
			}
		}
	}
	return false
}

// install adds the staged entries that the lease covers to the map. No operation
// succeeds on them yet. It does not wait for operations of an earlier tenure: it replaces their
// entries.
func (a *staged[V]) install(l leasehold.Lease) {
	a.once.Do(func() { // no effect after the move has failed
		for number, part := range a.parts {
			a.m.shards[number].install(a, l, part)
		}
	})
}

// install adds entries to a shard. They replace entries of an earlier tenure; an entry of
// a later tenure stays, because the lease has ended then.
func (s *shard[V]) install(a *staged[V], l leasehold.Lease, part map[string]*entry[V]) {
	m := a.m
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
		if s.entries == nil { // remove sets it to nil
			s.entries = make(map[string]*entry[V], len(part))
		}
		e.generation = l.Generation
		s.entries[name] = e
		m.alarms.schedule(e)
		if since, is := a.dirty[name]; is {
			m.markUnsaved(s, e, name, since)
		}
	}
}

// revoked frees the memory of values whose lease has
// ended. Operations on them already fail. A weak map keeps them until they expire. It does not
// wait for running operations. Write-behind saves those that have not moved, if no later owner has used them.
func (m *Map[V]) revoked(ended []leasehold.Lease, cause leasehold.Cause) {
	if m.cfg.Weak {
		return
	}
	for _, l := range ended {
		for i := shardOf(l.Range.Start); i <= shardOf(l.Range.Last()); i++ {
			m.shards[i].revoke(m, l, cause == leasehold.CauseMoved)
		}
	}
}

func (s *shard[V]) revoke(m *Map[V], l leasehold.Lease, moved bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, e := range s.entries {
		if e.generation <= l.Generation && l.Range.Contains(m.cfg.Key(name)) {
			if moved {
				e.state.Store(clean)
			}
			m.remove(s, name, e)
		}
	}
}
