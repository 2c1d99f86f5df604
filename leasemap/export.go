package leasemap

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// Mover returns what moves values to other servers that have such a map, and takes
// theirs in. Addresses and credentials may be set before it is used.
func (m *Map[V]) Mover() *owner.Mover {
	return &owner.Mover{
		Export: func(ctx context.Context, out *owner.Export) error { return m.export(ctx, out) },
		Import: func(ctx context.Context, in *owner.Import) (func(leasehold.Lease), error) { return m.receive(ctx, in) },
	}
}

// copyTime is how long values are copied before there is a rest, which is as long: the
// range is served meanwhile, by the same processors.
const copyTime = time.Millisecond

// An outgoing is a range whose values go to another server: what is used of
// [owner.Export].
type outgoing interface {
	Range() leasehold.Range
	Generation(key leasehold.Key) leasehold.Generation
	Send(record []byte) error
	Stop() error
}

// A copied is the part of a shard that has been copied, while it is served. It is under
// the shard's lock.
type copied[V any] struct {
	leasehold.Range
	shard   *shard[V]
	changed map[string]struct{} // what may have changed since; nil if nothing has
}

func (s *shard[V]) note(key leasehold.Key, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteLocked(key, name)
}

func (s *shard[V]) noteLocked(key leasehold.Key, name string) {
	for _, c := range s.copies {
		if !c.Contains(key) {
			continue
		}
		if c.changed == nil {
			c.changed = make(map[string]struct{})
		}
		c.changed[name] = struct{}{}
	}
}

// export sends all values of a range, one shard after the other, and when the range has
// been stopped those again that may have changed since.
//
// Why nothing is missed. An operation that is about to change a name has its turn, asks
// whether the shard is exported, and keeps the turn until it has ended; export says so
// first, and then takes the turn of each name. So an operation that has found no export has
// ended before its name is copied. One that has found an export notes the name and checks
// its lease after that; if the check succeeds, that is before the stop, and export finds
// the note and waits for its turn.
func (m *Map[V]) export(ctx context.Context, out outgoing) error {
	x := &sending[V]{m: m, out: out}
	var copies []*copied[V]
	defer func() {
		for _, c := range copies {
			c.end()
		}
	}()
	r := out.Range()
	for i := shardOf(r.Start); i <= shardOf(r.Last()); i++ {
		c, names := m.shards[i].copy(r)
		copies = append(copies, c)
		for _, name := range names {
			if err := x.send(ctx, c.shard, name, false); err != nil {
				return err
			}
			x.rest(ctx)
		}
	}
	if err := out.Stop(); err != nil {
		return err
	}
	for _, c := range copies {
		for name := range c.end() {
			if err := x.send(ctx, c.shard, name, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// copy returns the names that a shard has, and begins to note what changes of a range.
func (s *shard[V]) copy(r leasehold.Range) (*copied[V], []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &copied[V]{Range: r, shard: s}
	s.copies = append(s.copies, c)
	s.exports.Store(int32(len(s.copies)))
	return c, slices.Collect(maps.Keys(s.entries))
}

// end returns what may have changed, and notes no more. A second call returns nothing.
func (c *copied[V]) end() map[string]struct{} {
	s := c.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	s.copies = slices.DeleteFunc(s.copies, func(other *copied[V]) bool { return other == c })
	s.exports.Store(int32(len(s.copies)))
	changed := c.changed
	c.changed = nil
	return changed
}

type sending[V any] struct {
	m      *Map[V]
	out    outgoing
	record []byte
	worked time.Duration // since the last rest
}

// send sends a value of this tenure. If there is none, the other is told so if it may
// have been sent one.
func (x *sending[V]) send(ctx context.Context, s *shard[V], name string, again bool) error {
	m := x.m
	key := m.cfg.Key(name)
	if !x.out.Range().Contains(key) {
		return nil
	}
	record, found, err := x.encode(ctx, s, key, name)
	switch {
	case err != nil:
		return leasehold.Errorf("export", leasehold.KindOf(err), name, "its value cannot be sent: %w", err)
	case !found && !again:
		return nil
	case !found:
		record = appendDeleted(x.record[:0], name)
	}
	x.record = record
	return x.out.Send(record)
}

// encode makes a record of an entry, when it is its turn, if it has a value of this tenure.
func (x *sending[V]) encode(ctx context.Context, s *shard[V], key leasehold.Key, name string) ([]byte, bool, error) {
	e := s.find(name)
	if e == nil {
		return x.record, false, nil
	}
	if err := e.take(ctx, &s.mu); err != nil {
		return x.record, false, err
	}
	defer e.give(&s.mu)
	begun := time.Now()
	defer func() { x.worked += time.Since(begun) }()
	now := x.m.now()
	current := x.m.cfg.Weak || e.generation == x.out.Generation(key)
	if e.gone.Load() || !e.version.Exists() || e.expired(now) || !current {
		return x.record, false, nil
	}
	left := time.Duration(0)
	if at := e.expires.Load(); at != 0 {
		left = time.Duration(at) - now
	}
	record, err := x.m.cfg.Encode(appendHead(x.record[:0], name, e.version, left), &e.value)
	if err == nil && len(record) > maxRecord {
		err = leasehold.Errorf("", leasehold.ErrLimit, "", "it takes %d bytes with its name, and %d are allowed", len(record), maxRecord)
	}
	return record, true, err
}

// rest lets others have the processors, after some work.
func (x *sending[V]) rest(ctx context.Context) {
	if x.worked < copyTime {
		return
	}
	timer := time.NewTimer(x.worked)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done(): // the next Send says so
	}
	x.worked = 0
}
