package demo

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// mover has statuses go with their leases.
func (p *presence) mover() *owner.Mover {
	return &owner.Mover{
		Export: func(ctx context.Context, out *owner.Export) error { return p.export(ctx, out) },
		Import: func(_ context.Context, in *owner.Import) (func(leasehold.Lease), error) { return p.take(in) },
	}
}

// copyTime is how long statuses are copied before there is a rest, and copyRest how
// many times as long that is. Whoever takes them in has as much to do, and ranges
// move several at a time: without a rest they would keep all processors busy, and
// those that have stopped would wait the longest.
const (
	copyTime = time.Millisecond
	copyRest = 3
)

// An outgoing is a range whose statuses go to another server: what is used of
// [owner.Export].
type outgoing interface {
	Range() leasehold.Range
	Generation(key leasehold.Key) leasehold.Generation
	Send(record []byte) error
	Stop() error
}

// A copied is the part of a bucket that has been copied, while it is served. It
// is under the bucket's lock.
type copied struct {
	leasehold.Range
	bucket  *bucket
	changed map[leasehold.Key]struct{} // since then; nil if nothing has
}

func (c *copied) note(key leasehold.Key) {
	if !c.Contains(key) {
		return
	}
	if c.changed == nil {
		c.changed = make(map[leasehold.Key]struct{})
	}
	c.changed[key] = struct{}{}
}

// export sends all statuses of a range, one bucket after the other, and when the
// range has been stopped those again that have changed since. It takes its time
// before that: the range is served, and so are others, by the same processors.
func (p *presence) export(ctx context.Context, out outgoing) error {
	var copies []*copied
	defer func() {
		for _, c := range copies {
			c.end()
		}
	}()
	begun := time.Now()
	for b := range p.statuses.within(out.Range()) {
		c, all := b.copy(out.Range())
		copies = append(copies, c)
		if err := send(out, all); err != nil {
			return err
		}
		if worked := time.Since(begun); worked >= copyTime {
			pause(ctx, copyRest*worked)
			begun = time.Now()
		}
	}
	if err := out.Stop(); err != nil {
		return err
	}
	for _, c := range copies {
		// Whoever has checked its lease before the stop still has the lock.
		if err := send(out, c.end()); err != nil {
			return err
		}
	}
	return nil
}

// An entry is a status with its key.
type entry struct {
	key leasehold.Key
	status
}

// copy returns what a bucket has of a range, and begins to note what changes.
func (b *bucket) copy(r leasehold.Range) (*copied, []entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := &copied{Range: r, bucket: b}
	b.copies = append(b.copies, c)
	all := make([]entry, 0, len(b.known))
	for key, s := range b.known {
		if r.Contains(key) {
			all = append(all, entry{key, s})
		}
	}
	return c, all
}

// end returns what has changed, and notes no more. A second call returns
// nothing.
func (c *copied) end() []entry {
	b := c.bucket
	b.mu.Lock()
	defer b.mu.Unlock()
	b.copies = slices.DeleteFunc(b.copies, func(other *copied) bool { return other == c })
	var changed []entry
	for key := range c.changed {
		changed = append(changed, entry{key, b.known[key]})
	}
	c.changed = nil
	return changed
}

// headSize is what a record has before the text: the key and the number.
const headSize = 16

// send sends what is of this tenure.
func send(out outgoing, entries []entry) error {
	var record []byte
	for _, e := range entries {
		if e.generation() != out.Generation(e.key) {
			continue
		}
		record = binary.LittleEndian.AppendUint64(record[:0], uint64(e.key))
		record = binary.LittleEndian.AppendUint64(record, e.number)
		if err := out.Send(append(record, e.text...)); err != nil {
			return err
		}
	}
	return nil
}
