package routing

import (
	"context"
	"fmt"

	"github.com/buraksezer/consistent"
	"github.com/cespare/xxhash/v2"
	"github.com/dgryski/go-rendezvous"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyindex"
	"github.com/leasehold-dev/leasehold/lab/bench/loadgen"
)

const (
	perServer = 64            // ranges of a server
	nameCount = loadgen.Asked // names
)

// A router is a contestant.
type router struct {
	name   string
	pieces int  // number of pieces into which it divides the key space
	floor  bool // it is a lower bound, not a peer
	// find finds the servers of n names from the given first one, and returns the total
	// number of bytes of their addresses. Many goroutines call it concurrently. It contains the
	// loop, so that no indirect call is measured.
	find  func(first, n int) int
	close func()
}

// The contestants, without their variants.
const (
	nameLookup          = "leasehold lookup.Find"
	nameIndex           = "index, with XXH64"
	nameConsistent      = "buraksezer/consistent"
	nameConsistentLarge = "buraksezer/consistent, 64 for each server"
	nameRendezvous      = "dgryski/go-rendezvous"
)

// starters returns the functions that start the contestants. Leasehold is the first. One that
// returns nil cannot have so many servers.
func starters() []func(ctx context.Context, servers int) (*router, error) {
	return []func(context.Context, int) (*router, error){
		startLookup, startIndex, startConsistent, startConsistentLarge, startRendezvous,
	}
}

func nothing() {}

func address(server int) string { return fmt.Sprintf("server-%05d.example:7000", server) }

func addresses(servers int) []string {
	all := make([]string, servers)
	for i := range all {
		all[i] = address(i)
	}
	return all
}

// startIndex starts an index of the same ranges as the lookup's. It returns only the range
// of a name: the minimum cost for any user of such an index.
func startIndex(_ context.Context, servers int) (*router, error) {
	index, pieces, err := newIndex(servers)
	names := loadgen.Names(nameCount)
	find := func(first, n int) (sum int) {
		for i := range n {
			sum += index.Find(leasehold.KeyOf(names[(first+i)%nameCount]))
		}
		return sum
	}
	return &router{name: nameIndex, pieces: pieces, floor: true, find: find, close: nothing}, err
}

func newIndex(servers int) (*keyindex.Index, int, error) {
	leases, err := newTable(servers)
	if err != nil {
		return nil, 0, err
	}
	starts := make([]leasehold.Key, 0, leases.Len())
	for r := range leases.All() {
		starts = append(starts, r.Start)
	}
	return keyindex.New(starts), len(starts), nil
}

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
	const most = 2000 // with 10,000 it took 106 s: it sorts its ring again for each server
	if servers > most {
		return nil, nil
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
	for _, name := range loadgen.Names(nameCount) {
		keys = append(keys, []byte(name))
	}
	find := func(first, n int) (sum int) {
		for i := range n {
			sum += len(c.LocateKey(keys[(first+i)%nameCount]).String())
		}
		return sum
	}
	return &router{name: name, pieces: partitions, find: find, close: nothing}
}

// startRendezvous starts dgryski/go-rendezvous with XXH64, as in its README. It has no
// ring: it hashes the name with every server and takes the maximum. That spreads keys
// most evenly, and moves the fewest.
func startRendezvous(_ context.Context, servers int) (*router, error) {
	r := rendezvous.New(addresses(servers), xxhash.Sum64String)
	names := loadgen.Names(nameCount)
	find := func(first, n int) (sum int) {
		for i := range n {
			sum += len(r.Lookup(names[(first+i)%nameCount]))
		}
		return sum
	}
	return &router{name: nameRendezvous, pieces: servers, find: find, close: nothing}, nil
}
