package leasemap

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// read calls f with the entry of a name. For a missing name it calls f with an empty entry.
func (m *Map[V]) read(ctx context.Context, name string, f func(*entry[V])) error {
	key := m.cfg.Key(name)
	s := m.shard(key)
	for {
		lease, err := m.readOnce(ctx, s, key, name, f)
		if errors.Is(err, errReplaced) {
			continue
		}
		if err != nil {
			return err
		}
		if m.cfg.Weak || m.leases.Held(lease) {
			return nil
		}
		return m.refuse(opGet, name, key, leaseEnded)
	}
}

// readOnce fails with errReplaced if the entry was replaced meanwhile.
func (m *Map[V]) readOnce(ctx context.Context, s *shard[V], key leasehold.Key, name string, f func(*entry[V])) (owner.Lease, error) {
	e := s.find(name)
	var err error
	switch {
	case e != nil && e.tryLock():
	case m.cfg.Store != nil:
		e, err = m.acquireToRead(ctx, s, key, name)
	case e == nil:
		return m.readMissing(s, key, name, f)
	default:
		err = e.lock(context.Background(), &s.mu)
	}
	if err != nil {
		return owner.Lease{}, err
	}
	defer m.release(s, name, e)
	if e.removed.Load() {
		return owner.Lease{}, errReplaced
	}
	lease, err := m.validate(s, e, key, name, opGet)
	if err != nil {
		return lease, err
	}
	if m.cfg.Store != nil && !e.known {
		if err := m.load(ctx, s, e, opGet, name, lease); err != nil {
			return lease, err
		}
	}
	e.use()
	if m.expired(e) {
		s.mu.Lock()
		s.markChangedLocked(key, name) // otherwise the target would restore the value
		e.clear()
		s.mu.Unlock()
	}
	f(e)
	return lease, nil
}

// acquireToRead returns the locked entry of a name in a map with a store, a new one if there is none. It limits the
// wait for another load or operation.
func (m *Map[V]) acquireToRead(ctx context.Context, s *shard[V], key leasehold.Key, name string) (*entry[V], error) {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.StoreTimeout)
	defer cancel()
	return m.acquire(ctx, s, key, name, opGet)
}

// readMissing reads a name without an entry. An entry that is missing after the lease was
// checked was missing at the check.
func (m *Map[V]) readMissing(s *shard[V], key leasehold.Key, name string, f func(*entry[V])) (owner.Lease, error) {
	lease, ok := m.leases.Check(key)
	if !ok && !m.cfg.Weak {
		return owner.Lease{}, m.refuse(opGet, name, key, notOwned)
	}
	if s.find(name) != nil {
		return owner.Lease{}, errReplaced
	}
	f(new(entry[V]))
	return lease, nil
}

// All yields all names with a value, and the values, in undefined order. It yields every
// name that exists during the whole iteration, and may yield a name that is added or removed
// meanwhile. With a Store it omits names that are not in memory. A weak map yields all of its names, other maps the names that this server owns.
// The loop's body holds no lock. Listing the names of a shard, one of 4,096, blocks
// operations in that shard.
func (m *Map[V]) All() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for i := range m.shards {
			for _, name := range m.shards[i].names() {
				value, exists, err := m.Get(name)
				if err == nil && exists && !yield(name, value) {
					return
				}
			}
		}
	}
}

func (s *shard[V]) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.entries))
}
