package leasemap

import (
	"iter"
	"maps"
	"slices"
)

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
