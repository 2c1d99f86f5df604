package main

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/partition"
)

// byLoad is consistent hashing in which an owner's measured load is bounded. At
// each decision, partitions are placed anew, in the order of their numbers: each
// goes to the first owner on the circle, from where its hash puts it, that has room for it
// below the factor times the mean; if none has, to the one that has least.
//
// An owner says nothing of what has just come to it. Until it does, what was last
// known of the partition counts, and before anything is known, all cost the same.
type byLoad struct {
	name       string
	factor     float64
	partitions partitions
	loads      []float64 // of the partitions, as last known; nil before that
}

// newByLoad has the library's factor.
func newByLoad(owners int) partition.Policy {
	return &byLoad{name: nameBounded, factor: factor, partitions: partitions(owners * perOwner)}
}

// newTight has the factor that makes it about as even as ours.
func newTight(owners int) partition.Policy {
	return &byLoad{name: nameTight, factor: tightFactor, partitions: partitions(owners * perOwner)}
}

// Name tells it from the library.
func (b *byLoad) Name() string { return b.name }

// Assign places all partitions. It remembers what they cost, and is for one
// goroutine.
func (b *byLoad) Assign(in partition.Input) (partition.Assignment, error) {
	b.learn(in.Loads)
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

// roomFrom returns the first member from a place on that has at most so much, or
// the one that has least.
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

// learn takes over what is known of partitions. A cell may reach over several of
// them: what it costs is divided among them by their keys, but for its hot keys, of
// which it is known where they are.
func (b *byLoad) learn(loads partition.Loads) {
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

// overlap is how many keys two ranges share, which share some.
func overlap(a, b leasehold.Range) float64 {
	return float64(min(a.Last(), b.Last())-max(a.Start, b.Start)) + 1
}
