package leasemap

import (
	"iter"
	"maps"
	"slices"
)

// Names yields the names that have a value here, in no order: all that were there before
// it began and still are, and of those that come or go meanwhile some. A weak map yields
// all that it has, and others those that this server owns. It holds up operations for as
// long as it takes to look at the names of a shard, one of 4,096.
func (m *Map[V]) Names() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range m.shards {
			for _, name := range m.shards[i].names() {
				if m.has(name) && !yield(name) {
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

func (m *Map[V]) has(name string) bool {
	found := false
	err := m.read(name, func(e *entry[V]) { found = e.version.Exists() })
	return err == nil && found
}
