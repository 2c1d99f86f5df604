package balance

import (
	"math/bits"
	"slices"

	"github.com/buraksezer/consistent"
	"github.com/cespare/xxhash/v2"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/partition"
)

// perOwner is the number of partitions of the library per initial owner, as many as the points of
// consistent hashing.
const perOwner = 64

// A library is the policy of buraksezer/consistent with its defaults, except for the number of
// partitions, whose default is too low for many owners. A partition is a range of keys here, not
// all keys with the same hash modulo the number of partitions. Since keys are hashes, both are
// equivalent.
type library struct {
	partitions int

	members []partition.Member // of the last call
	answer  partition.Assignment
}

func newLibrary(owners int) partition.Policy { return &library{partitions: owners * perOwner} }

func (*library) Name() string { return nameLibrary }

// Assign calls the library. The assignment depends only on the members, so it is cached until
// they change: building the ring takes a second.
func (l *library) Assign(in partition.Input) (partition.Assignment, error) {
	if l.answer != nil && slices.Equal(in.Members, l.members) {
		return l.answer, nil
	}
	var members []consistent.Member
	for _, m := range in.Members {
		members = append(members, named(m.Owner))
	}
	c := consistent.New(members, consistent.Config{
		Hasher: hasher{}, PartitionCount: l.partitions, ReplicationFactor: consistent.DefaultReplicationFactor, Load: consistent.DefaultLoad,
	})
	l.members, l.answer = slices.Clone(in.Members), nil
	for i := range l.partitions {
		l.answer = l.answer.Append(l.start(i), leasehold.OwnerID(c.GetPartitionOwner(i).String()))
	}
	return l.answer, nil
}

// start returns the first key of a partition.
func (l *library) start(i int) leasehold.Key {
	start, _ := bits.Div64(uint64(i), 0, uint64(l.partitions))
	return leasehold.Key(start)
}

type named leasehold.OwnerID

func (n named) String() string { return string(n) }

// hasher is the hash function of the library's README.
type hasher struct{}

func (hasher) Sum64(data []byte) uint64 { return xxhash.Sum64(data) }
