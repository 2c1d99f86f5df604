package lookup

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyindex"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// A snapshot is a table with an index of its ranges. It is
// immutable and safe for concurrent use.
type snapshot struct {
	table *table.Table
	index *keyindex.Index
	// at contains, for each range in order, the index of its holder's address in
	// addrs; 0 if it has no holder. Four-byte indexes and a short list of
	// addresses fit into a processor's cache; pointers to holders are
	// larger and scattered. Find takes 26 ns instead of 46.
	at    []uint32
	addrs []string
	// superseded is closed when a newer snapshot is published.
	superseded chan struct{}
}

// newSnapshot indexes a table, in time linear in the number of ranges.
func newSnapshot(t *table.Table) *snapshot {
	s := &snapshot{table: t, at: make([]uint32, 0, t.Len()), addrs: []string{""}, superseded: make(chan struct{})}
	starts := make([]leasehold.Key, 0, t.Len())
	numbers := map[*table.Holder]uint32{nil: 0}
	for r, e := range t.All() {
		number, known := numbers[e.Holder]
		if !known {
			number = uint32(len(s.addrs))
			numbers[e.Holder] = number
			s.addrs = append(s.addrs, e.Holder.Addr)
		}
		starts = append(starts, r.Start)
		s.at = append(s.at, number)
	}
	s.index = keyindex.New(starts)
	return s
}

// find returns the address of k's holder. It reports false if there is none.
func (s *snapshot) find(k leasehold.Key) (addr string, ok bool) {
	number := s.at[s.index.Find(k)]
	return s.addrs[number], number != 0
}

// servers returns the addresses of all holders. Two holders may have the same one: a
// restarted server, and its predecessor whose leases have not expired.
func (s *snapshot) servers() []string {
	addrs := slices.Clone(s.addrs[1:])
	slices.Sort(addrs)
	return slices.Compact(addrs)
}
