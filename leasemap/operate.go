package leasemap

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// manner is what an operation does to the value's version.
type manner bool

const (
	changing manner = false
	touching manner = true
)

// operate carries out an operation on a name. The numbers are those of a server's
// obligations in package leasehold.
func (m *Map[V]) operate(ctx context.Context, name string, do func(*Entry[V]) error, how manner, options []Option) (Version, error) {
	if err := ctx.Err(); err != nil {
		return Version{}, leasehold.Errorf(opUpdate, leasehold.Unavailable, name, "nothing was done: %w", err)
	}
	key := m.cfg.Key(name)
	s := m.shard(key)
	done, err := m.carryOut(s, key, name, do, how, options)
	switch {
	case err != nil:
		return Version{}, err
	case m.cfg.Weak || m.leases.Held(done.lease): // 4
		return done.version, nil
	case done.changed:
		return Version{}, leasehold.Errorf(opUpdate, leasehold.Unavailable, name, "the lease ended meanwhile: it may have been carried out, or not")
	}
	return Version{}, leasehold.Errorf(opUpdate, leasehold.NotOwner, name, "the lease ended meanwhile")
}

// An outcome is what has become of an operation.
type outcome struct {
	lease   owner.Lease
	version Version
	changed bool
}

// carryOut carries out an operation under the lock of its name.
func (m *Map[V]) carryOut(s *shard[V], key leasehold.Key, name string, do func(*Entry[V]) error, how manner, options []Option) (outcome, error) {
	e, err := m.take(s, key, name)
	if err != nil {
		return outcome{}, err
	}
	defer m.put(s, name, e) // whatever do does
	// The note comes before the check: whoever exports, and has stopped the lease, finds
	// all that have passed it. See export.
	if s.exports.Load() > 0 {
		s.note(key, name)
	}
	return m.apply(s, e, key, name, do, how, options)
}

// apply does what must be done under the lock.
func (m *Map[V]) apply(s *shard[V], e *entry[V], key leasehold.Key, name string, do func(*Entry[V]) error, how manner, options []Option) (outcome, error) {
	lease, err := m.validate(e, key, name, opUpdate) // 1, 2
	if err != nil {
		return outcome{}, err
	}
	if e.expires != 0 && e.expired(m.now()) {
		e.clear()
	}
	work := m.entry()
	defer m.done(work)
	*work = Entry[V]{
		Value: e.value, Version: e.version, Next: Version{lease.Generation, m.first + s.writes.Add(1)}, Lease: lease, ttl: m.cfg.TTL,
	}
	next := work.Next
	for _, o := range options {
		if o.conditional && o.version != e.version {
			return outcome{}, leasehold.Errorf(opUpdate, leasehold.Stale, name, "it has version %v, and not %v", e.version, o.version)
		}
		if o.limited {
			work.ttl = o.ttl
		}
	}
	if err := do(work); err != nil {
		return outcome{}, err
	}
	switch { // 3
	case work.kept:
	case work.deleted:
		e.clear()
	case how == touching:
		m.last(e, work.ttl)
	default:
		e.value, e.version = work.Value, next
		m.last(e, work.ttl)
	}
	e.generation = lease.Generation
	return outcome{lease, e.version, !work.kept}, nil
}

// entry returns an Entry for an operation, and done takes it back. It would be made
// anew for each operation otherwise, because the application's function has it.
func (m *Map[V]) entry() *Entry[V] {
	if e, ok := m.spare.Get().(*Entry[V]); ok {
		return e
	}
	return new(Entry[V])
}

func (m *Map[V]) done(e *Entry[V]) {
	*e = Entry[V]{} // it must not keep a value in memory
	m.spare.Put(e)
}

// last says for how long a value lasts from now on.
func (m *Map[V]) last(e *entry[V], ttl time.Duration) {
	e.expires = 0
	if ttl > 0 {
		e.expires = m.now() + ttl
	}
}

// validate checks the lease of a name whose entry is locked, and discards what is left
// of an earlier tenure. A weak map discards nothing, and refuses nobody.
func (m *Map[V]) validate(e *entry[V], key leasehold.Key, name, op string) (owner.Lease, error) {
	lease, ok := m.leases.Check(key) // 1
	switch {
	case m.cfg.Weak && !ok:
		return owner.Lease{}, nil
	case m.cfg.Weak:
	case !ok || e.generation > lease.Generation:
		return owner.Lease{}, leasehold.Errorf(op, leasehold.NotOwner, name, "another server has it, or nobody does")
	case e.generation < lease.Generation: // 2
		e.clear()
	}
	return lease, nil
}

// read looks at a value. It makes no entry for a name that has none.
func (m *Map[V]) read(name string, look func(*entry[V])) error {
	key := m.cfg.Key(name)
	s := m.shard(key)
	for {
		e := s.find(name)
		if e == nil {
			lease, err := m.lookAtNothing(s, key, name, look)
			if errors.Is(err, errThere) {
				continue
			}
			if err != nil {
				return err
			}
			return m.confirm(lease, name)
		}
		e.mu.Lock()
		if e.gone {
			e.mu.Unlock() // it was removed while we waited, and there may be another
			continue
		}
		lease, err := m.lookAt(s, e, key, name, look)
		if err != nil {
			return err
		}
		return m.confirm(lease, name)
	}
}

// errThere says that a name has an entry now.
var errThere = errors.New("there is an entry")

// lookAtNothing looks at a name that had no entry. What is not there after the lease was
// checked was not there when it was.
func (m *Map[V]) lookAtNothing(s *shard[V], key leasehold.Key, name string, look func(*entry[V])) (owner.Lease, error) {
	var nothing entry[V]
	lease, err := m.validate(&nothing, key, name, opGet)
	if err != nil {
		return lease, err
	}
	if s.find(name) != nil {
		return lease, errThere
	}
	look(&nothing)
	return lease, nil
}

// lookAt looks at a locked entry, and unlocks it.
func (m *Map[V]) lookAt(s *shard[V], e *entry[V], key leasehold.Key, name string, look func(*entry[V])) (owner.Lease, error) {
	defer m.put(s, name, e)
	lease, err := m.validate(e, key, name, opGet)
	if err != nil {
		return lease, err
	}
	if e.expires != 0 && e.expired(m.now()) {
		e.clear()
	}
	look(e)
	return lease, nil
}

// confirm says whether what was read was true: the lease was held all along.
func (m *Map[V]) confirm(lease owner.Lease, name string) error {
	if m.cfg.Weak || m.leases.Held(lease) {
		return nil
	}
	return leasehold.Errorf(opGet, leasehold.NotOwner, name, "the lease ended meanwhile")
}
