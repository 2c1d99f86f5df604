package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyindex"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// The floors.
const (
	nameIndex = "index, with XXH64"
	nameBare  = "index, key given"
)

func holder(server int) *table.Holder {
	return &table.Holder{
		Owner:   leasehold.OwnerID(fmt.Sprintf("server-%05d", server)),
		Session: leasehold.Session{byte(server), byte(server >> 8), 1},
		Addr:    address(server), Weight: 1,
	}
}

// leases returns a table as consistent hashing makes it: a range begins wherever
// one of a server's virtual nodes is.
func leases(servers int) (*table.Table, error) {
	holders := make(map[leasehold.Key]*table.Holder)
	var starts []leasehold.Key
	for server := range servers {
		h := holder(server)
		for node := range perServer {
			start := leasehold.KeyOf(fmt.Sprintf("%s/%d", h.Owner, node))
			if server == 0 && node == 0 {
				start = 0
			}
			holders[start] = h
			starts = append(starts, start)
		}
	}
	slices.Sort(starts)
	var b keyrange.Builder[table.Entry]
	for i, start := range slices.Compact(starts) {
		b.Append(start, table.Entry{Generation: leasehold.Generation(i + 1), Holder: holders[start]})
	}
	return table.Restore(1, leasehold.Generation(len(starts)), b.Map())
}

func newIndex(servers int) (*keyindex.Index, int, error) {
	leases, err := leases(servers)
	if err != nil {
		return nil, 0, err
	}
	starts := make([]leasehold.Key, 0, leases.Len())
	for r := range leases.All() {
		starts = append(starts, r.Start)
	}
	return keyindex.New(starts), len(starts), nil
}

// startIndex has the same ranges as the lookup, and says only which of them a
// name is in: the least that anyone with such an index must pay.
func startIndex(_ context.Context, servers int) (*router, error) {
	index, pieces, err := newIndex(servers)
	if err != nil {
		return nil, err
	}
	names := names()
	return &router{name: nameIndex, pieces: pieces, floor: true, close: nothing, find: func(first, n int) (sum int) {
		for i := range n {
			sum += index.Find(leasehold.KeyOf(names[(first+i)%asked]))
		}
		return sum
	}}, nil
}

// startBare is the same for those who know the key: no hash.
func startBare(_ context.Context, servers int) (*router, error) {
	index, pieces, err := newIndex(servers)
	if err != nil {
		return nil, err
	}
	keys := make([]leasehold.Key, asked)
	for i, name := range names() {
		keys[i] = leasehold.KeyOf(name)
	}
	return &router{name: nameBare, pieces: pieces, floor: true, close: nothing, find: func(first, n int) (sum int) {
		for i := range n {
			sum += index.Find(keys[(first+i)%asked])
		}
		return sum
	}}, nil
}
