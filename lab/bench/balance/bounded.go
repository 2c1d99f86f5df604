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

// The settings of the bounded contestants: the library's defaults, except for the number of
// partitions, whose default is too low for many owners.
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

// partitions is a number of equal partitions of the key space.
type partitions int

func (p partitions) start(i int) leasehold.Key {
	start, _ := bits.Div64(uint64(i), 0, uint64(p))
	return leasehold.Key(start)
}

func (p partitions) part(i int) leasehold.Range {
	r := leasehold.Range{Start: p.start(i)}
	if i+1 < int(p) {
		r.Limit = p.start(i + 1)
	}
	return r
}

func (p partitions) of(k leasehold.Key) int {
	i, _ := bits.Mul64(uint64(k), uint64(p))
	if next := int(i) + 1; next < int(p) && p.start(next) <= k { // starts are rounded down
		return next
	}
	return int(i)
}

// assignment returns the assignment of all partitions, by a function.
func (p partitions) assignment(owner func(i int) leasehold.OwnerID) partition.Assignment {
	var a partition.Assignment
	for i := range int(p) {
		a = a.Append(p.start(i), owner(i))
	}
	return a
}

type library struct {
	partitions partitions

	members []partition.Member // of the last call
	answer  partition.Assignment
}

func newLibrary(owners int) partition.Policy {
	return &library{partitions: partitions(owners * perOwner)}
}

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
		Hasher: hasher{}, PartitionCount: int(l.partitions), ReplicationFactor: replicas, Load: factor,
	})
	l.members = slices.Clone(in.Members)
	l.answer = l.partitions.assignment(func(i int) leasehold.OwnerID { return leasehold.OwnerID(c.GetPartitionOwner(i).String()) })
	return l.answer, nil
}

type named leasehold.OwnerID

func (n named) String() string { return string(n) }

// hasher is the hash function of the library's README.
type hasher struct{}

func (hasher) Sum64(data []byte) uint64 { return xxhash.Sum64(data) }

// A place is a point of a member on the ring.
type place struct {
	hash   uint64
	member int
}

// circle returns the sorted points of the members, as in the library.
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

// first returns the index of the preferred point of a partition.
func first(places []place, i int) int {
	var id [8]byte
	binary.LittleEndian.PutUint64(id[:], uint64(i))
	at, _ := slices.BinarySearchFunc(places, xxhash.Sum64(id[:]), func(p place, hash uint64) int { return cmp.Compare(p.hash, hash) })
	return at % len(places)
}

// byLoad is consistent hashing with a bound on the measured load of an owner. Each decision
// places all partitions again, in the order of their numbers: each goes to the first owner on
// the ring, from its hash on, whose load stays below the factor times the mean; otherwise to
// the owner with the lowest load.
//
// An owner reports no load of partitions that it has just received. Until then the last known
// load counts; before any report, all loads are equal.
type byLoad struct {
	name       string
	factor     float64
	partitions partitions
	loads      []float64 // of the partitions, last known; nil before the first report
}

// newByLoad uses the library's factor.
func newByLoad(owners int) partition.Policy {
	return &byLoad{name: nameBounded, factor: factor, partitions: partitions(owners * perOwner)}
}

// newTight uses a factor that gives about the evenness of the balanced policy.
func newTight(owners int) partition.Policy {
	return &byLoad{name: nameTight, factor: tightFactor, partitions: partitions(owners * perOwner)}
}

func (b *byLoad) Name() string { return b.name }

// Assign places all partitions. It is not safe for concurrent use.
func (b *byLoad) Assign(in partition.Input) (partition.Assignment, error) {
	b.updateLoads(in.Loads)
	places := circle(in.Members)
	total := 0.0
	for i := range int(b.partitions) {
		total += b.load(i)
	}
	most := b.factor * total / float64(len(in.Members))
	theirs := make([]float64, len(in.Members))
	return b.partitions.assignment(func(i int) leasehold.OwnerID {
		m := roomFrom(places, first(places, i), theirs, most-b.load(i))
		theirs[m] += b.load(i)
		return in.Members[m].Owner
	}), nil
}

// roomFrom returns the first member from a point on with at most a load, or the member with
// the lowest load.
func roomFrom(places []place, from int, theirs []float64, most float64) int {
	for n := range places {
		if m := places[(from+n)%len(places)].member; theirs[m] <= most {
			return m
		}
	}
	return slices.Index(theirs, slices.Min(theirs))
}

func (b *byLoad) load(i int) float64 {
	if b.loads == nil {
		return 1
	}
	return b.loads[i]
}

// updateLoads updates the loads of partitions from reported cells. The load of a cell that
// spans several partitions is divided by their keys, except its hot keys, which belong to
// known partitions.
func (b *byLoad) updateLoads(loads partition.Loads) {
	if len(loads.Cells) == 0 {
		return
	}
	if b.loads == nil {
		b.loads = make([]float64, b.partitions)
	}
	sums, known := make([]float64, b.partitions), make([]float64, b.partitions)
	hot := loads.Hot
	for _, c := range loads.Cells {
		rest := c.Rate
		for ; len(hot) > 0 && hot[0].Key <= c.Range.Last(); hot = hot[1:] {
			if hot[0].Key >= c.Range.Start {
				sums[b.partitions.of(hot[0].Key)] += hot[0].Rate
				rest -= hot[0].Rate
			}
		}
		for i := b.partitions.of(c.Range.Start); i <= b.partitions.of(c.Range.Last()); i++ {
			keys := overlap(b.partitions.part(i), c.Range)
			known[i] += keys
			sums[i] += max(0, rest) * keys / float64(c.Range.Size())
		}
	}
	for i := range sums {
		if known[i] >= partition.EnoughKnown*float64(b.partitions.part(i).Size()) {
			b.loads[i] = sums[i]
		}
	}
}

// overlap returns the number of common keys of two overlapping ranges.
func overlap(a, b leasehold.Range) float64 {
	return float64(min(a.Last(), b.Last())-max(a.Start, b.Start)) + 1
}
