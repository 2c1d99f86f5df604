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

// All yields what Names does, and besides names that this server must not serve for now:
// those of a range that is about to go to another server, for instance, and will stay if
// that fails. Whoever tells all values something tries those again, until they are no
// longer there.
func (m *Map[V]) All() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range m.shards {
			for _, name := range m.shards[i].names() {
				if !yield(name) {
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
