package bench

import (
	"github.com/buraksezer/consistent"
	"github.com/cespare/xxhash/v2"
)

// The contestants of buraksezer/consistent.
const (
	Consistent      = "consistent LocateKey, 1,009 partitions"
	ConsistentLarge = "consistent LocateKey, 64,007 partitions"
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
// library panics. So it has 1,009: the least that it can have, a prime number as
// the README advises, and where it is quickest.
func startConsistent() (Contestant, error) { return newConsistent(Consistent, 1009), nil }

// startConsistentLarge has as many partitions as Leasehold has ranges: it can
// spread keys over the servers as evenly, and move as few when one joins.
func startConsistentLarge() (Contestant, error) { return newConsistent(ConsistentLarge, 64_007), nil }

func newConsistent(name string, partitions int) Contestant {
	var members []consistent.Member
	for server := range Servers {
		members = append(members, member(address(server)))
	}
	c := consistent.New(members, consistent.Config{
		Hasher: hasher{}, PartitionCount: partitions,
		ReplicationFactor: consistent.DefaultReplicationFactor, Load: consistent.DefaultLoad,
	})
	var keys [][]byte // it takes bytes: it does not have to pay for turning names into them
	for _, name := range names() {
		keys = append(keys, []byte(name))
	}
	return Contestant{
		Name: name,
		Run: func(n int) (sum int) {
			for i := range n {
				sum += len(c.LocateKey(keys[i%asked]).String())
			}
			return sum
		},
		Close: nothing,
	}
}
