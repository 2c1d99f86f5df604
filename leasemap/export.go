package leasemap

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// copyTime is the time of copying before a pause of the same length, because the
// server needs the processors for requests.
const copyTime = time.Millisecond

// An outgoing is the part of [owner.Export] that export uses.
type outgoing interface {
	Range() leasehold.Range
	Generation(key leasehold.Key) leasehold.Generation
	Send(record []byte) error
	Stop() error
}

// A copied is the part of a shard that is being exported while operations change it. The
// shard's lock protects it.
type copied[V any] struct {
	leasehold.Range
	shard   *shard[V]
	changed map[string]struct{} // names that may have changed since the copy; nil if none
}

// markChanged records that a name may change in all exports that contain it.
func (s *shard[V]) markChanged(key leasehold.Key, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.markChangedLocked(key, name)
}

func (s *shard[V]) markChangedLocked(key leasehold.Key, name string) {
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

// export saves what write-behind has not saved, if it can, and sends all values of a range: those of one map after the other, and after Stop again
// those of each that may have changed since the copy.
//
// Why no change is missed: an operation that changes a name holds the name's lock while it
// reads s.exports and until it ends; export increases s.exports
// first, and then locks each name. So an operation that has read 0 has
// ended before its name is copied. Another operation marks the name as changed and then checks
// its lease again. If that check succeeds, it is before the stop, and export finds
// the mark after Stop and waits for the name's lock.
func (g *Group) export(ctx context.Context, out outgoing) error {
	selected := &selection{outgoing: out}
	var copies []copying
	defer func() {
		for _, c := range copies {
			c.end()
		}
	}()
	for _, name := range g.names {
		selected.next = name
		g.maps[name].settle(ctx)
		c := g.maps[name].begin(selected)
		copies = append(copies, c)
		if err := c.sendAll(ctx); err != nil {
			return err
		}
	}
	if err := out.Stop(); err != nil {
		return err
	}
	for i, name := range g.names {
		selected.next = name
		if err := copies[i].sendChanged(ctx); err != nil {
			return err
		}
	}
	return nil
}

// A selection sends the records of several maps. The target must know of which map a record is.
// Records without a selection are of the map "", so that a server with one map sends the same
// as one without groups.
type selection struct {
	outgoing
	current, next string
}

func (s *selection) Send(record []byte) error {
	if s.current != s.next {
		if err := s.outgoing.Send(appendSelect(nil, s.next)); err != nil {
			return err
		}
		s.current = s.next
	}
	return s.outgoing.Send(record)
}

// copying is the export of one map.
type copying interface {
	sendAll(ctx context.Context) error
	sendChanged(ctx context.Context) error // since sendAll, after the stop
	end()                                  // stops the recording of changes; may be called again
}

func (m *Map[V]) begin(out outgoing) copying { return &sender[V]{m: m, out: out} }

func (x *sender[V]) sendAll(ctx context.Context) error {
	r := x.out.Range()
	for i := shardOf(r.Start); i <= shardOf(r.Last()); i++ {
		c, names := x.m.shards[i].copy(r)
		x.copies = append(x.copies, c)
		for _, name := range names {
			if err := x.send(ctx, c.shard, name, false); err != nil {
				return err
			}
			x.pause(ctx)
		}
	}
	return nil
}

func (x *sender[V]) sendChanged(ctx context.Context) error {
	for _, c := range x.copies {
		for name := range c.end() {
			if err := x.send(ctx, c.shard, name, true); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *sender[V]) end() {
	for _, c := range x.copies {
		c.end()
	}
}

// copy returns the names of a shard, and begins to record the changes in a range.
func (s *shard[V]) copy(r leasehold.Range) (*copied[V], []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &copied[V]{Range: r, shard: s}
	s.copies = append(s.copies, c)
	s.exports.Store(int32(len(s.copies)))
	return c, slices.Collect(maps.Keys(s.entries))
}

// end stops the recording, and returns the names that may have changed. A second call returns
// none.
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

// A sender exports a range of a map.
type sender[V any] struct {
	m      *Map[V]
	out    outgoing
	copies []*copied[V]
	record []byte
	worked time.Duration // since the last pause
}

// send sends a value of this tenure. If there is none, it sends a deletion if the value may
// have been sent before.
func (x *sender[V]) send(ctx context.Context, s *shard[V], name string, again bool) error {
	m := x.m
	key := m.cfg.Key(name)
	if !x.out.Range().Contains(key) {
		return nil
	}
	record, found, err := x.encode(ctx, s, key, name)
	switch {
	case err != nil:
		return leasehold.Errorf("export", leasehold.KindOf(err), name, "the value cannot be sent: %w", err)
	case !found && !again:
		return nil
	case !found:
		record = appendDeleted(x.record[:0], name)
	}
	x.record = record
	return x.out.Send(record)
}

// encode locks an entry, and encodes it if it has a value of this tenure.
func (x *sender[V]) encode(ctx context.Context, s *shard[V], key leasehold.Key, name string) ([]byte, bool, error) {
	e := s.find(name)
	if e == nil {
		return x.record, false, nil
	}
	if err := e.lock(ctx, &s.mu); err != nil {
		return x.record, false, err
	}
	defer e.unlock(&s.mu)
	begun := time.Now()
	defer func() { x.worked += time.Since(begun) }()
	now := x.m.now()
	current := x.m.cfg.Weak || e.generation == x.out.Generation(key)
	exists, dirty := e.version.Exists() && !e.expired(now), e.state.Load() != clean
	switch {
	case e.removed.Load() || !current || !exists && !dirty:
		return x.record, false, nil
	case !exists:
		return appendUnsaved(appendDeleted(x.record[:0], name), x.m.unsavedFor()), true, nil
	}
	head := appendName(x.record[:0], kindValue, name)
	switch {
	case dirty:
		head = appendUnsaved(head, x.m.unsavedFor())
	case x.m.cfg.Store != nil:
		head[1] |= kindStored
	}
	if at := e.alarmAt(); !at.IsZero() {
		head = appendAlarm(head, at)
	}
	record, err := x.m.cfg.Encode(appendVersion(head, e.version, e.ttl(now)), &e.value)
	if err == nil && len(record) > maxRecord {
		err = leasehold.Errorf("", leasehold.ErrLimit, "", "name and value take %d bytes, more than %d", len(record), maxRecord)
	}
	return record, true, err
}

// pause sleeps after copyTime of work for as long as that work took.
func (x *sender[V]) pause(ctx context.Context) {
	if x.worked < copyTime {
		return
	}
	timer := time.NewTimer(x.worked)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done(): // the next Send returns the error
	}
	x.worked = 0
}
