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

// read looks at a value. It makes no entry for a name that has none.
func (m *Map[V]) read(name string, look func(*entry[V])) error {
	key := m.cfg.Key(name)
	s := m.shard(key)
	for {
		lease, err := m.lookOnce(s, key, name, look)
		if errors.Is(err, errMoved) {
			continue
		}
		if err != nil {
			return err
		}
		if m.cfg.Weak || m.leases.Held(lease) { // it was true: the lease was held all along
			return nil
		}
		return m.refuse(opGet, name, key, leaseEnded)
	}
}

// lookOnce fails with errMoved if what was looked at has been replaced meanwhile.
func (m *Map[V]) lookOnce(s *shard[V], key leasehold.Key, name string, look func(*entry[V])) (owner.Lease, error) {
	e := s.find(name)
	if e == nil {
		return m.lookAtNothing(s, key, name, look)
	}
	if err := e.take(context.Background(), &s.mu); err != nil {
		return owner.Lease{}, err // never
	}
	defer m.put(s, name, e)
	if e.gone.Load() {
		return owner.Lease{}, errMoved
	}
	lease, err := m.validate(s, e, key, name, opGet)
	if err != nil {
		return lease, err
	}
	if m.expired(e) {
		if s.exports.Load() > 0 {
			s.note(key, name) // or the next owner would show it again
		}
		e.clear()
	}
	look(e)
	return lease, nil
}

// lookAtNothing looks at a name that had no entry. What is not there after the lease was
// checked was not there when it was.
func (m *Map[V]) lookAtNothing(s *shard[V], key leasehold.Key, name string, look func(*entry[V])) (owner.Lease, error) {
	lease, ok := m.leases.Check(key)
	if !ok && !m.cfg.Weak {
		return owner.Lease{}, m.refuse(opGet, name, key, elsewhere)
	}
	if s.find(name) != nil {
		return owner.Lease{}, errMoved
	}
	look(new(entry[V]))
	return lease, nil
}

// All yields the names that have a value here, with the values, in no order. It yields every
// name that exists during the whole iteration, and may yield a name that is added or removed
// meanwhile. A weak map yields all names that it has, other maps those that this server owns.
// The loop's body holds no lock. To list the names of a shard, one of 4,096, blocks
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
