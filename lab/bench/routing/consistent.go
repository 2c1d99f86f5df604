package main

import (
	"context"
	"errors"

	"github.com/buraksezer/consistent"
	"github.com/cespare/xxhash/v2"
)

// The contestants of buraksezer/consistent.
const (
	nameConsistent      = "buraksezer/consistent"
	nameConsistentLarge = "buraksezer/consistent, 64 for each server"
)

// member is a server's address.
type member string

func (m member) String() string { return string(m) }

// hasher is the one that the library's README has.
type hasher struct{}

func (hasher) Sum64(data []byte) uint64 { return xxhash.Sum64(data) }

// startConsistent is the library as its README has it, with 20 replicas, a load
// of 1.25 and XXH64. A name's hash modulo the number of partitions is its
// partition, and a map says whose it is. The README's number of partitions is 7,
// for two servers, and the default is 271; with more servers than partitions the
// library panics. So it has hardly more than servers: where it is quickest.
func startConsistent(_ context.Context, servers int) (*router, error) {
	return newConsistent(nameConsistent, servers, servers+9), nil
}

// startConsistentLarge has as many partitions as Leasehold has ranges: it can
// spread keys over the servers as evenly, and move as few when one joins.
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
	var keys [][]byte // it takes bytes: it does not have to pay for turning names into them
	for _, name := range names() {
		keys = append(keys, []byte(name))
	}
	return &router{
		name: name, pieces: partitions, close: nothing,
		find: func(first, n int) (sum int) {
			for i := range n {
				sum += len(c.LocateKey(keys[(first+i)%asked]).String())
			}
			return sum
		},
		change: func(i int) error {
			if i%2 == 0 {
				c.Remove(goes())
			} else {
				c.Add(member(goes()))
			}
			return nil
		},
	}
}
