package leasemap

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

type operation[V any] struct {
	name    string
	key     leasehold.Key
	options []Option

	// One of these. That they are apart saves functions that would be made for each
	// operation.
	do     func(*Entry[V]) error
	change func(*V) error
	value  V // if there is neither

	// What has become of it.
	lease   owner.Lease
	version Version
	changed bool
}

func (o *operation[V]) run(e *Entry[V]) error {
	switch {
	case o.do != nil:
		return o.do(e)
	case o.change != nil:
		return o.change(&e.Value)
	}
	e.Value = o.value
	return nil
}

// operate carries out an operation on a name. The numbers are those of a server's
// obligations in package leasehold.
func (m *Map[V]) operate(ctx context.Context, o *operation[V]) (Version, error) {
	if err := ctx.Err(); err != nil {
		return Version{}, leasehold.Errorf(opUpdate, leasehold.ErrUnavailable, o.name, "nothing was done: %w", context.Cause(ctx))
	}
	o.key = m.cfg.Key(o.name)
	err := m.carryOut(ctx, m.shard(o.key), o)
	switch {
	case err != nil:
		return Version{}, err
	case m.cfg.Weak || m.leases.Held(o.lease): // 4
		return o.version, nil
	case o.changed:
		return Version{}, leasehold.Errorf(opUpdate, leasehold.ErrIndeterminate, o.name, "the lease ended meanwhile: it may have been carried out, or not")
	}
	return Version{}, m.refuse(opUpdate, o.name, o.key, leaseEnded)
}

var errMoved = errors.New("the entry has gone")

func (m *Map[V]) carryOut(ctx context.Context, s *shard[V], o *operation[V]) error {
	for {
		e, err := m.take(ctx, s, o.key, o.name, opUpdate)
		switch {
		case err == nil:
			err = m.inTurn(s, e, o)
		case errors.Is(err, leasehold.ErrLimit):
			err = m.carryOutWithoutRoom(s, o, err)
		}
		if err == nil || !errors.Is(err, errMoved) {
			return err
		}
	}
}

// inTurn does what must be done while it is our turn, whatever the application's function
// does.
func (m *Map[V]) inTurn(s *shard[V], e *entry[V], o *operation[V]) (err error) {
	defer m.put(s, o.name, e)
	if o.lease, err = m.validate(s, e, o.key, o.name, opUpdate); err != nil { // 1, 2
		return err
	}
	return m.apply(s, e, o)
}

// carryOutWithoutRoom carries out an operation on a name that has no value, in a map that
// has no room for one. It may find that there is nothing, but not change that.
func (m *Map[V]) carryOutWithoutRoom(s *shard[V], o *operation[V], full error) (err error) {
	nothing := &entry[V]{} // nobody else sees it
	if o.lease, err = m.validate(s, nothing, o.key, o.name, opUpdate); err != nil {
		return err
	}
	if s.find(o.name) != nil {
		return errMoved // it is there now
	}
	err = m.apply(s, nothing, o)
	if err == nil && nothing.version.Exists() {
		err = full
	}
	return err
}

func (m *Map[V]) apply(s *shard[V], e *entry[V], o *operation[V]) error {
	existed := e.version.Exists() && !m.expired(e)
	work := m.entry()
	defer m.done(work)
	next := Version{o.lease.Generation, m.first + s.writes.Add(1)}
	work.Next, work.Lease, work.ttl = next, o.lease, m.cfg.TTL
	if existed {
		work.Value, work.Version = e.value, e.version
	}
	if err := m.conditions(work, o); err != nil {
		return err
	}
	if err := o.run(work); err != nil {
		return err
	}
	if work.ttl == 0 && m.cfg.Weak {
		return leasehold.Errorf(opUpdate, leasehold.ErrInvalid, o.name, "nothing was done: values of a weak map do not last for ever")
	}
	if work.kept || (work.deleted || work.touched) && !existed {
		o.version = work.Version
		return nil
	}
	if err := m.announce(s, o); err != nil {
		return err
	}
	switch { // 3
	case work.deleted:
		e.clear()
	case work.touched:
		m.last(e, work.ttl)
	default:
		e.value, e.version = work.Value, next
		m.last(e, work.ttl)
	}
	o.version, o.changed = e.version, true
	return nil
}

func (m *Map[V]) conditions(work *Entry[V], o *operation[V]) error {
	for _, option := range o.options {
		if option.conditional && option.version != work.Version {
			return leasehold.Errorf(opUpdate, leasehold.ErrStale, o.name, "nothing was done: it has version %v, and not %v", work.Version, option.version)
		}
		if option.limited {
			work.ttl = option.ttl
		}
	}
	return nil
}

// announce notes a name that is about to change, if its shard is being exported. The note
// comes before a check: whoever exports, and has stopped the lease, finds the notes of all
// whose check has succeeded. See export.
func (m *Map[V]) announce(s *shard[V], o *operation[V]) error {
	if s.exports.Load() == 0 {
		return nil
	}
	s.note(o.key, o.name)
	if again, ok := m.leases.Check(o.key); !m.cfg.Weak && (!ok || again.Generation != o.lease.Generation) {
		return m.refuse(opUpdate, o.name, o.key, elsewhere)
	}
	return nil
}

// entry returns an empty Entry for an operation, and done takes it back. It would be made
// anew for each operation otherwise, because the application's function has it.
func (m *Map[V]) entry() *Entry[V] {
	if e, ok := m.spare.Get().(*Entry[V]); ok {
		return e
	}
	return new(Entry[V])
}

func (m *Map[V]) done(e *Entry[V]) {
	*e = Entry[V]{} // it must not keep a value in memory, and is empty for the next
	m.spare.Put(e)
}

// validate checks the lease of a name whose turn we have, and discards what is left of an
// earlier tenure. A weak map discards nothing, and refuses nobody. It fails with errMoved if
// the entry is not in its place any more.
func (m *Map[V]) validate(s *shard[V], e *entry[V], key leasehold.Key, name, op string) (owner.Lease, error) {
	lease, ok := m.leases.Check(key) // 1
	if !m.cfg.Weak && (!ok || e.generation > lease.Generation) {
		return owner.Lease{}, m.refuse(op, name, key, elsewhere)
	}
	if e.gone.Load() {
		return owner.Lease{}, errMoved
	}
	if !ok {
		return owner.Lease{}, nil // and weak
	}
	if e.generation < lease.Generation && !m.cfg.Weak && !s.adopt(e, lease.Generation) { // 2
		return owner.Lease{}, errMoved
	}
	return lease, nil
}

// expired reports whether a value is over. The clock, which costs as much as all else, is
// read only for those that end.
func (m *Map[V]) expired(e *entry[V]) bool {
	return e.expires.Load() != 0 && e.expired(m.now())
}

func (m *Map[V]) last(e *entry[V], ttl time.Duration) {
	if ttl == 0 {
		if e.expires.Load() != 0 { // to write what others may read costs more than to look
			e.expires.Store(0)
		}
		return
	}
	e.last(m.now(), ttl)
}

func (m *Map[V]) now() time.Duration { return time.Since(m.base) }

// A refusal is why an operation was refused, and for which key. Whoever tells a caller of
// it over a network says the key, so that one who has routed by another finds out at once,
// and does not look for a server that has it.
type refusal struct {
	name string
	key  leasehold.Key
	why  string
}

func (r *refusal) Error() string { return r.why }

// RefusedKey returns the name that was asked for, and its key. Packages leasehttp and
// leasegrpc look for this method.
func (r *refusal) RefusedKey() (name string, key leasehold.Key) { return r.name, r.key }

const (
	elsewhere  = "another server has it, or nobody does"
	leaseEnded = "the lease ended meanwhile"
	suspended  = "nothing was done: no manager has renewed the lease in time, and the value is kept until one answers"
)

// refuse returns why an operation is refused that has done nothing: the lease on the name
// is suspended, or this server has none.
func (m *Map[V]) refuse(op, name string, key leasehold.Key, why string) error {
	kind := leasehold.ErrNotOwner
	if m.leases.Suspended(key) {
		kind, why = leasehold.ErrSuspended, suspended
	}
	return &leasehold.Error{Op: op, Kind: kind, Subject: name, Err: &refusal{name, key, why}}
}
