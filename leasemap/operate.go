package leasemap

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

type operation[V any] struct {
	name    string
	key     leasehold.Key
	options []Option

	// One of these. Three fields instead of one function avoid a closure for each
	// operation.
	do     func(*Entry[V]) error
	change func(*V) error
	value  V // if both are nil

	// The result.
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

// operate executes an operation on a name. The numbers refer to the
// obligations of a server in package leasehold.
func (m *Map[V]) operate(ctx context.Context, o *operation[V]) (Version, error) {
	if err := ctx.Err(); err != nil {
		return Version{}, leasehold.Errorf(opUpdate, leasehold.ErrUnavailable, o.name, "nothing was done: %w", context.Cause(ctx))
	}
	o.key = m.cfg.Key(o.name)
	if m.cfg.WriteBehind != nil {
		if err := m.admit(ctx, o.key, o.name); err != nil {
			return Version{}, err
		}
	}
	err := m.execute(ctx, m.shard(o.key), o)
	switch {
	case err != nil:
		return Version{}, err
	case m.cfg.Weak || m.leases.Held(o.lease): // 4
		return o.version, nil
	case o.changed:
		return Version{}, leasehold.Errorf(opUpdate, leasehold.ErrIndeterminate, o.name, "the lease ended during the operation: the change may have been executed or not")
	}
	return Version{}, m.refuse(opUpdate, o.name, o.key, leaseEnded)
}

// errReplaced means that the entry was removed or replaced, and the operation must find it again.
var errReplaced = errors.New("the entry was replaced")

func (m *Map[V]) execute(ctx context.Context, s *shard[V], o *operation[V]) error {
	for {
		e, err := m.acquire(ctx, s, o.key, o.name, opUpdate)
		switch {
		case err == nil:
			err = m.executeLocked(ctx, s, e, o)
		case errors.Is(err, leasehold.ErrLimit) && m.cfg.Store == nil:
			err = m.executeFull(s, o, err)
		}
		if err == nil || !errors.Is(err, errReplaced) {
			return err
		}
	}
}

// executeLocked executes an operation on a locked entry, and releases it, also after a panic of
// the application's function.
func (m *Map[V]) executeLocked(ctx context.Context, s *shard[V], e *entry[V], o *operation[V]) (err error) {
	defer m.release(s, o.name, e)
	if o.lease, err = m.validate(s, e, o.key, o.name, opUpdate); err != nil { // 1, 2
		return err
	}
	if m.cfg.Store != nil && !e.known {
		if err := m.prepare(ctx, s, e, o); err != nil {
			return err
		}
	}
	if m.cfg.WriteBehind == nil && e.state.Load() != clean {
		// The save of this operation must follow that of the value which has moved here.
		if err := m.Flush(ctx); e.state.Load() != clean {
			return leasehold.Errorf(opUpdate, leasehold.ErrUnavailable, o.name, "nothing was done: the value has moved from a server without a store, and cannot be saved (%v)", err)
		}
	}
	err = m.apply(ctx, s, e, o)
	e.use()
	return err
}

// prepare loads the value of an operation. One that replaces any value does not need it, unless the value can have an
// alarm, which stays.
func (m *Map[V]) prepare(ctx context.Context, s *shard[V], e *entry[V], o *operation[V]) error {
	conditional := slices.ContainsFunc(o.options, func(option Option) bool { return option.conditional })
	if o.do == nil && o.change == nil && !conditional && m.alarms == nil {
		return validateName(opUpdate, o.name)
	}
	return m.load(ctx, s, e, opUpdate, o.name, o.lease)
}

// executeFull executes an operation on a name without a value in a full map. It fails if the
// operation creates a value.
func (m *Map[V]) executeFull(s *shard[V], o *operation[V], full error) (err error) {
	empty := &entry[V]{} // not in the shard
	if o.lease, err = m.validate(s, empty, o.key, o.name, opUpdate); err != nil {
		return err
	}
	if s.find(o.name) != nil {
		return errReplaced // added meanwhile
	}
	empty.removed.Store(true)                        // its alarm is not scheduled
	err = m.apply(context.Background(), s, empty, o) // there is no store
	if err == nil && empty.version.Exists() {
		err = full
	}
	return err
}

func (m *Map[V]) apply(ctx context.Context, s *shard[V], e *entry[V], o *operation[V]) error {
	existed := e.version.Exists() && !m.expired(e)
	work := m.newEntry()
	defer m.recycle(work)
	next := Version{o.lease.Generation, m.first + s.writes.Add(1)}
	work.Next, work.Lease, work.ttl = next, o.lease, m.cfg.TTL
	if existed {
		work.Value, work.Version, work.alarm = e.value, e.version, e.alarmAt()
	}
	if err := m.applyOptions(work, o); err != nil {
		return err
	}
	if err := o.run(work); err != nil {
		return err
	}
	if work.ttl == 0 && m.cfg.Weak {
		return leasehold.Errorf(opUpdate, leasehold.ErrInvalid, o.name, "nothing was done: values of a weak map must expire")
	}
	if work.alarmed && m.alarms == nil {
		return leasehold.Errorf(opUpdate, leasehold.ErrInvalid, o.name, "nothing was done: the map has no OnAlarm for the alarm")
	}
	if work.kept && !work.alarmed || (work.kept || work.deleted || work.touched) && !existed {
		o.version = work.Version
		return nil
	}
	if err := m.recordChange(s, o); err != nil {
		return err
	}
	if m.cfg.Store != nil && m.cfg.WriteBehind == nil {
		if err := m.save(ctx, e, o, work); err != nil {
			return err
		}
	}
	m.commit(s, e, o, work, next) // 3
	return nil
}

// commit executes a change in memory. The flusher reads entries under the shard's lock.
func (m *Map[V]) commit(s *shard[V], e *entry[V], o *operation[V], work *Entry[V], next Version) {
	if m.unsaved != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	switch {
	case work.kept:
	case work.deleted:
		e.clear()
	case work.touched:
		m.setTTL(e, work.ttl)
	default:
		e.value, e.version = work.Value, next
		m.setTTL(e, work.ttl)
	}
	if e.version.Exists() {
		m.setAlarm(e, o.name, work.alarm)
	}
	e.known = m.cfg.Store != nil
	o.version, o.changed = e.version, true
	if m.cfg.WriteBehind != nil {
		m.markUnsaved(s, e, o.name, m.now())
	}
}

func (m *Map[V]) applyOptions(work *Entry[V], o *operation[V]) error {
	for _, option := range o.options {
		if option.conditional && option.version != work.Version {
			return leasehold.Errorf(opUpdate, leasehold.ErrStale, o.name, "nothing was done: the version is %v, want %v", work.Version, option.version)
		}
		if option.limited {
			work.ttl = option.ttl
		}
	}
	return nil
}

// recordChange records a name that will change, if its shard is being exported. Then it checks
// the lease again: an export that has stopped the lease finds the records of all operations
// whose check has succeeded. See export.
func (m *Map[V]) recordChange(s *shard[V], o *operation[V]) error {
	if s.exports.Load() == 0 {
		return nil
	}
	s.markChanged(o.key, o.name)
	if again, ok := m.leases.Check(o.key); !m.cfg.Weak && (!ok || again.Generation != o.lease.Generation) {
		return m.refuse(opUpdate, o.name, o.key, notOwned)
	}
	return nil
}

// newEntry returns an empty Entry for an operation, and recycle returns it to the pool. Otherwise
// each operation would allocate one, because it escapes to the application's function.
func (m *Map[V]) newEntry() *Entry[V] {
	if e, ok := m.spare.Get().(*Entry[V]); ok {
		return e
	}
	return new(Entry[V])
}

func (m *Map[V]) recycle(e *Entry[V]) {
	*e = Entry[V]{} // releases the value
	m.spare.Put(e)
}

// validate checks the lease of a locked name, and discards state of an
// earlier tenure. A weak map neither discards nor refuses. It fails with errReplaced if
// the entry is not in its shard any more.
func (m *Map[V]) validate(s *shard[V], e *entry[V], key leasehold.Key, name, op string) (owner.Lease, error) {
	lease, ok := m.leases.Check(key) // 1
	if !m.cfg.Weak && (!ok || e.generation > lease.Generation) {
		return owner.Lease{}, m.refuse(op, name, key, notOwned)
	}
	if e.removed.Load() {
		return owner.Lease{}, errReplaced
	}
	if !ok {
		return owner.Lease{}, nil // the map is weak
	}
	if e.generation < lease.Generation && !m.cfg.Weak && !s.discardOld(m, name, e, lease.Generation) { // 2
		return owner.Lease{}, errReplaced
	}
	return lease, nil
}

// expired reports whether a value has expired. It reads the clock, which costs as much as the rest of an
// operation, only for values with a TTL.
func (m *Map[V]) expired(e *entry[V]) bool {
	return e.expires.Load() != 0 && e.expired(m.now())
}

func (m *Map[V]) setTTL(e *entry[V], ttl time.Duration) {
	if ttl == 0 {
		if e.expires.Load() != 0 { // a load of a shared cache line is cheaper than a store
			e.expires.Store(0)
		}
		return
	}
	e.setTTL(m.now(), ttl)
}

func (m *Map[V]) now() time.Duration { return time.Since(m.base) }

// A refusal is the reason why an operation was refused, with the key. Responses over a network
// contain the key, so that a caller that has routed by another key fails at once
// instead of looking for the owner.
type refusal struct {
	name   string
	key    leasehold.Key
	reason string
}

func (r *refusal) Error() string { return r.reason }

// RefusedKey returns the name of the operation, and its key. Packages leasehttp and
// leasegrpc use this method.
func (r *refusal) RefusedKey() (name string, key leasehold.Key) { return r.name, r.key }

const (
	notOwned   = "this server does not own the name"
	leaseEnded = "the lease ended during the operation"
	superseded = "the store has a later generation or token: a later owner has used the name"
	suspended  = "nothing was done: no manager has renewed the lease in time, and the value is kept until one replies"
)

// refuse returns the error of an operation that has done nothing: the lease on the name
// is suspended, or this server has none.
func (m *Map[V]) refuse(op, name string, key leasehold.Key, reason string) error {
	kind := leasehold.ErrNotOwner
	if m.leases.Suspended(key) {
		kind, reason = leasehold.ErrSuspended, suspended
	}
	return &leasehold.Error{Op: op, Kind: kind, Subject: name, Err: &refusal{name, key, reason}}
}
