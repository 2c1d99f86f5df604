package leasemap

import (
	"context"
	"errors"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// token returns a token that is higher than all before it under the same generation.
func (m *Map[V]) token(s *shard[V], g leasehold.Generation) Version {
	return Version{g, m.first + s.writes.Add(1)}
}

// load loads the value of a locked entry, unless it is known. The entry's lock serializes loads of a name.
func (m *Map[V]) load(ctx context.Context, s *shard[V], e *entry[V], op, name string, lease owner.Lease) error {
	if err := validateName(op, name); err != nil {
		return err
	}
	r, err := m.fetch(ctx, name, m.token(s, lease.Generation))
	switch {
	case errors.Is(err, leasehold.ErrStale):
		return m.refuse(op, name, lease.Key, superseded)
	case err != nil:
		return leasehold.Errorf(op, leasehold.ErrUnavailable, name, "nothing was done: the value cannot be loaded: %w", err)
	}
	if again, ok := m.leases.Check(lease.Key); !ok || again.Generation != lease.Generation {
		return m.refuse(op, name, lease.Key, leaseEnded)
	}
	var value V
	if r.Version.Exists() {
		if err := m.cfg.Decode(r.Value, &value); err != nil {
			return leasehold.Errorf(op, leasehold.ErrInvalid, name, "nothing was done: the stored value cannot be decoded: %w", err)
		}
	}
	e.value, e.version, e.known = value, r.Version, true
	m.setTTL(e, r.TTL)
	if e.version.Exists() {
		m.setAlarm(e, name, r.Alarm)
	}
	return nil
}

// fetch calls the store's Load, at most Config.MaxLoads times at once.
func (m *Map[V]) fetch(ctx context.Context, name string, token Version) (Record, error) {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.StoreTimeout)
	defer cancel()
	select {
	case m.loads <- struct{}{}:
	case <-ctx.Done():
		return Record{}, context.Cause(ctx)
	}
	defer func() { <-m.loads }()
	return m.cfg.Store.Load(ctx, name, token)
}

// save saves the result of an operation, before it is visible. If the outcome is unknown, the value in
// memory is forgotten: the next operation loads it, with a higher token, after which the save cannot
// happen any more.
func (m *Map[V]) save(ctx context.Context, e *entry[V], o *operation[V], work *Entry[V]) error {
	r, err := m.recordOf(e, o, work)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, m.cfg.StoreTimeout)
	defer cancel()
	refused, err := m.cfg.Store.Save(ctx, []Record{r})
	switch {
	case err != nil && unchanged(err):
		return leasehold.Errorf(opUpdate, leasehold.KindOf(err), o.name, "nothing was done: the value cannot be saved: %w", err)
	case err != nil:
		e.forget()
		return leasehold.Errorf(opUpdate, leasehold.ErrIndeterminate, o.name, "the value may have been saved or not: %w", err)
	case len(refused) > 0:
		e.forget()
		return m.refuse(opUpdate, o.name, o.key, superseded)
	}
	return nil
}

// recordOf returns the record of the result of an operation.
func (m *Map[V]) recordOf(e *entry[V], o *operation[V], work *Entry[V]) (Record, error) {
	r := Record{Name: o.name, Key: o.key, Token: work.Next, TTL: work.ttl, Alarm: work.alarm}
	value := &work.Value
	switch {
	case work.kept:
		r.Version, r.TTL, value = e.version, e.ttl(m.now()), &e.value
	case work.deleted || work.ttl < 0:
		return Record{Name: o.name, Key: o.key, Token: work.Next}, nil
	case work.touched:
		r.Version, value = e.version, &e.value
	default:
		r.Version = work.Next
	}
	return r, m.encodeInto(&r, value)
}

func (m *Map[V]) encodeInto(r *Record, value *V) (err error) {
	r.Value, err = m.cfg.Encode(nil, value)
	switch {
	case err != nil:
		return leasehold.Errorf(opUpdate, leasehold.ErrInvalid, r.Name, "nothing was done: the value cannot be encoded: %w", err)
	case len(r.Name)+len(r.Value) > maxRecord:
		return leasehold.Errorf(opUpdate, leasehold.ErrLimit, r.Name, "nothing was done: name and value take %d bytes, more than %d", len(r.Name)+len(r.Value), maxRecord)
	}
	return nil
}
