package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/buraksezer/consistent"
	"github.com/cespare/xxhash/v2"
	"github.com/dgryski/go-rendezvous"
	lafikl "github.com/lafikl/consistent"
	"github.com/serialx/hashring"
	stathat "github.com/stathat/consistent"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyindex"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// mostBuilding is how long a ring may take to build. Rings that sort all their points for
// each added server need minutes for 10,000 servers.
const mostBuilding = 40 * time.Second

// addAll adds all servers, and fails if that takes too long.
func addAll(servers int, add func(string)) error {
	start := time.Now()
	for i, addr := range addresses(servers) {
		if add(addr); time.Since(start) > mostBuilding {
			return fmt.Errorf("after %v it has %d of %d servers: it sorts its ring again for each", mostBuilding, i+1, servers)
		}
	}
	return nil
}

// goes is the index of the server that leaves and returns. It is not the first, which
// some libraries handle faster.
func goes() string { return address(1) }

// leaveAndJoin returns a router's change: a server leaves if i is even, and joins again
// if i is odd.
func leaveAndJoin(leave, join func()) func(i int) error {
	return func(i int) error {
		if i%2 == 0 {
			leave()
		} else {
			join()
		}
		return nil
	}
}

// startStathat starts stathat/consistent with its defaults, 20 points for each server.
// It hashes with CRC-32, searches a sorted list, and reads a map.
func startStathat(_ context.Context, servers int) (*router, error) {
	ring := stathat.New()
	c := &router{name: "stathat/consistent", pieces: servers * ring.NumberOfReplicas, close: nothing}
	if err := addAll(servers, ring.Add); err != nil {
		return c, err
	}
	names := names()
	c.find = func(first, n int) (sum int) {
		for i := range n {
			addr, _ := ring.Get(names[(first+i)%nameCount])
			sum += len(addr)
		}
		return sum
	}
	c.change = leaveAndJoin(func() { ring.Remove(goes()) }, func() { ring.Add(goes()) })
	return c, nil
}

// startSerialx starts serialx/hashring as in its README, with one point for each server.
// It hashes with MD5. A change creates a new ring; readers load it from an atomic pointer.
func startSerialx(_ context.Context, servers int) (*router, error) {
	var current atomic.Pointer[hashring.HashRing]
	current.Store(hashring.New(addresses(servers)))
	names := names()
	return &router{
		name: "serialx/hashring", pieces: servers, close: nothing,
		find: func(first, n int) (sum int) {
			for i := range n {
				addr, _ := current.Load().GetNode(names[(first+i)%nameCount])
				sum += len(addr)
			}
			return sum
		},
		change: leaveAndJoin(
			func() { current.Store(current.Load().RemoveNode(goes())) }, func() { current.Store(current.Load().AddNode(goes())) }),
	}, nil
}

// startRendezvous starts dgryski/go-rendezvous with XXH64, as in its README. It has no
// ring: it hashes the name with every server and takes the maximum. That spreads keys
// most evenly, and moves the fewest.
func startRendezvous(_ context.Context, servers int) (*router, error) {
	all := addresses(servers)
	var current atomic.Pointer[rendezvous.Rendezvous]
	current.Store(rendezvous.New(all, xxhash.Sum64String))
	names := names()
	return &router{
		name: "dgryski/go-rendezvous", pieces: servers, close: nothing,
		find: func(first, n int) (sum int) {
			for i := range n {
				sum += len(current.Load().Lookup(names[(first+i)%nameCount]))
			}
			return sum
		},
		change: leaveAndJoin( // it does not support concurrent reads and changes
			func() { current.Store(rendezvous.New(append([]string{all[0]}, all[2:]...), xxhash.Sum64String)) },
			func() { current.Store(rendezvous.New(all, xxhash.Sum64String)) }),
	}, nil
}

// startLafikl starts lafikl/consistent. Its Get ignores loads, like all the others here.
// It has 10 points for each server, and hashes with BLAKE2b.
func startLafikl(_ context.Context, servers int) (*router, error) {
	const points = 10
	ring := lafikl.New()
	c := &router{name: "lafikl/consistent", pieces: servers * points, close: nothing}
	if err := addAll(servers, ring.Add); err != nil {
		return c, err
	}
	names := names()
	c.find = func(first, n int) (sum int) {
		for i := range n {
			addr, _ := ring.Get(names[(first+i)%nameCount])
			sum += len(addr)
		}
		return sum
	}
	c.change = leaveAndJoin(func() { ring.Remove(goes()) }, func() { ring.Add(goes()) })
	return c, nil
}

// The contestants of buraksezer/consistent.
const (
	nameConsistent      = "buraksezer/consistent"
	nameConsistentLarge = "buraksezer/consistent, 64 for each server"
)

type member string

func (m member) String() string { return string(m) }

// hasher is the hasher of the library's README.
type hasher struct{}

func (hasher) Sum64(data []byte) uint64 { return xxhash.Sum64(data) }

// startConsistent starts the library as in its README, with 20 replicas, a load of 1.25
// and XXH64. A name's hash modulo the number of partitions is its partition, and a map
// has the server of each partition. The README has 7 partitions, for two servers, and the
// default is 271; with more servers than partitions the library panics. So it gets
// slightly more partitions than servers, with which it is fastest.
func startConsistent(_ context.Context, servers int) (*router, error) {
	return newConsistent(nameConsistent, servers, servers+9), nil
}

// startConsistentLarge starts it with as many partitions as Leasehold has ranges, so
// that it spreads keys as evenly, and moves as few when a server joins.
func startConsistentLarge(_ context.Context, servers int) (*router, error) {
	const most = 2000 // with 10,000 it took 106 s, and then 1.3 s for each change
	if servers > most {
		return &router{name: nameConsistentLarge}, errors.New("it takes minutes to build: it sorts its ring again for each server")
	}
	return newConsistent(nameConsistentLarge, servers, servers*perServer+7), nil
}

func newConsistent(name string, servers, partitions int) *router {
	var members []consistent.Member
	for _, addr := range addresses(servers) {
		members = append(members, member(addr))
	}
	c := consistent.New(members, consistent.Config{
		Hasher: hasher{}, PartitionCount: partitions,
		ReplicationFactor: consistent.DefaultReplicationFactor, Load: consistent.DefaultLoad,
	})
	var keys [][]byte // the library takes bytes; the conversion of names is not measured
	for _, name := range names() {
		keys = append(keys, []byte(name))
	}
	return &router{
		name: name, pieces: partitions, close: nothing,
		find: func(first, n int) (sum int) {
			for i := range n {
				sum += len(c.LocateKey(keys[(first+i)%nameCount]).String())
			}
			return sum
		},
		change: leaveAndJoin(func() { c.Remove(goes()) }, func() { c.Add(member(goes())) }),
	}
}

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

// leases returns a table as of consistent hashing: a range begins at each virtual node
// of a server.
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

// newIndex returns a floor without find, and its index.
func newIndex(name string, servers int) (*router, *keyindex.Index, error) {
	leases, err := leases(servers)
	if err != nil {
		return nil, nil, err
	}
	starts := make([]leasehold.Key, 0, leases.Len())
	for r := range leases.All() {
		starts = append(starts, r.Start)
	}
	return &router{name: name, pieces: len(starts), floor: true, close: nothing}, keyindex.New(starts), nil
}

// startIndex starts an index of the same ranges as the lookup's. It returns only the range
// of a name: the minimum cost for any user of such an index.
func startIndex(_ context.Context, servers int) (*router, error) {
	c, index, err := newIndex(nameIndex, servers)
	if err != nil {
		return nil, err
	}
	names := names()
	c.find = func(first, n int) (sum int) {
		for i := range n {
			sum += index.Find(leasehold.KeyOf(names[(first+i)%nameCount]))
		}
		return sum
	}
	return c, nil
}

// startBare starts the same index with known keys, without hashing.
func startBare(_ context.Context, servers int) (*router, error) {
	c, index, err := newIndex(nameBare, servers)
	if err != nil {
		return nil, err
	}
	keys := make([]leasehold.Key, nameCount)
	for i, name := range names() {
		keys[i] = leasehold.KeyOf(name)
	}
	c.find = func(first, n int) (sum int) {
		for i := range n {
			sum += index.Find(keys[(first+i)%nameCount])
		}
		return sum
	}
	return c, nil
}
