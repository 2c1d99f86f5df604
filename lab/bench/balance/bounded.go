package main

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"

	"github.com/buraksezer/consistent"
	"github.com/cespare/xxhash/v2"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/partition"
)

// The circle of the bounded ones: the library's defaults, but for the number of
// partitions, of which its default is too few for more than some owners.
const (
	replicas     = consistent.DefaultReplicationFactor
	factor       = consistent.DefaultLoad
	tightFactor  = 1.1
	perOwner     = 64
	nameLibrary  = "bounded (buraksezer)"
	nameBounded  = "bounded by load, 1.25"
	nameTight    = "bounded by load, 1.1"
	nameBalanced = "balanced"
	nameAdaptive = "adaptive"
	namePlain    = "consistent"
)

// partitions are equal parts of the key space, a fixed number of them.
type partitions int

// start is the first key of partition i.
func (p partitions) start(i int) leasehold.Key {
	start, _ := bits.Div64(uint64(i), 0, uint64(p))
	return leasehold.Key(start)
}

// part is partition i.
func (p partitions) part(i int) leasehold.Range {
	r := leasehold.Range{Start: p.start(i)}
	if i+1 < int(p) {
		r.Limit = p.start(i + 1)
	}
	return r
}

// of is the partition of a key.
func (p partitions) of(k leasehold.Key) int {
	i, _ := bits.Mul64(uint64(k), uint64(p))
	if next := int(i) + 1; next < int(p) && p.start(next) <= k { // starts are rounded down
		return next
	}
	return int(i)
}

// assignment gives each partition to the owner that owner says.
func (p partitions) assignment(owner func(i int) leasehold.OwnerID) partition.Assignment {
	var a partition.Assignment
	for i := range int(p) {
		a = a.Append(p.start(i), owner(i))
	}
	return a
}

// library is buraksezer/consistent as a policy.
type library struct {
	partitions partitions

	members []partition.Member // whom it was last asked about
	answer  partition.Assignment
}

func newLibrary(owners int) partition.Policy {
	return &library{partitions: partitions(owners * perOwner)}
}

// Name says whose it is.
func (*library) Name() string { return nameLibrary }

// Assign asks the library. Its answer depends on the members alone, so that it is
// asked only if these have changed: to build its circle takes it a second.
func (l *library) Assign(in partition.Input) (partition.Assignment, error) {
	if l.answer != nil && slices.Equal(in.Members, l.members) {
		return l.answer, nil
	}
	var members []consistent.Member
	for _, m := range in.Members {
		members = append(members, named(m.Owner))
	}
	c := consistent.New(members, consistent.Config{
		Hasher: hasher{}, PartitionCount: int(l.partitions), ReplicationFactor: replicas, Load: factor,
	})
	l.members = slices.Clone(in.Members)
	l.answer = l.partitions.assignment(func(i int) leasehold.OwnerID { return leasehold.OwnerID(c.GetPartitionOwner(i).String()) })
	return l.answer, nil
}

// named is an owner as the library wants it.
type named leasehold.OwnerID

func (n named) String() string { return string(n) }

// hasher is the one that the library's README has.
type hasher struct{}

func (hasher) Sum64(data []byte) uint64 { return xxhash.Sum64(data) }

// A place is where a member is on the circle.
type place struct {
	hash   uint64
	member int
}

// circle returns the places of the members as the library has them, in order.
func circle(members []partition.Member) []place {
	places := make([]place, 0, len(members)*replicas)
	for i, m := range members {
		for r := range replicas {
			places = append(places, place{xxhash.Sum64String(string(m.Owner) + strconv.Itoa(r)), i})
		}
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.member, b.member))
	})
	return places
}

// first is the index of the place to which a partition goes if there is room.
func first(places []place, i int) int {
	var id [8]byte
	binary.LittleEndian.PutUint64(id[:], uint64(i))
	at, _ := slices.BinarySearchFunc(places, xxhash.Sum64(id[:]), func(p place, hash uint64) int { return cmp.Compare(p.hash, hash) })
	return at % len(places)
}
