package main

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/partition"
)

func pool(n int) []partition.Member {
	var members []partition.Member
	for i := range n {
		members = append(members, partition.Member{Owner: leasehold.OwnerID(fmt.Sprintf("owner-%03d", i)), Weight: 1})
	}
	return members
}

func assign(t *testing.T, p partition.Policy, in partition.Input) partition.Assignment {
	t.Helper()
	a, err := partition.Apply(p, in)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestPartitionsAreThoseOfTheirKeys: every key is in the partition that has it, also at
// the edges.
func TestPartitionsAreThoseOfTheirKeys(t *testing.T) {
	for _, n := range []partitions{1, 2, 3, 64, 1000, 31_999} {
		for i := range int(n) {
			r := n.part(i)
			for _, k := range []leasehold.Key{r.Start, r.Start + 1, r.Last()} {
				if got := n.of(k); got != i {
					t.Fatalf("of %d partitions, %v is in %d, want %d", n, k, got, i)
				}
			}
		}
		if last := n.part(int(n) - 1).Last(); last != math.MaxUint64 {
			t.Errorf("%d partitions end at %v", n, last)
		}
	}
}

// held counts the partitions of each owner.
func held(p partitions, a partition.Assignment) map[leasehold.OwnerID]int {
	counts := make(map[leasehold.OwnerID]int)
	for i := range int(p) {
		counts[a.OwnerAt(p.start(i))]++
	}
	return counts
}

// TestLibraryIsBounded: no owner has more partitions than the factor allows, and an owner that
// rejoins gets its previous partitions.
func TestLibraryIsBounded(t *testing.T) {
	p := newLibrary(20)
	before := assign(t, p, partition.Input{Members: pool(20)})
	for owner, n := range held(20*perOwner, before) {
		if float64(n) > perOwner*factor {
			t.Errorf("%s has %d partitions, want at most %v", owner, n, perOwner*factor)
		}
	}
	without := assign(t, p, partition.Input{Members: pool(19)})
	if slices.Equal(before, without) {
		t.Error("an owner left without a change")
	}
	if !slices.Equal(before, assign(t, p, partition.Input{Members: pool(20)})) {
		t.Error("the assignment differs after an owner left and rejoined")
	}
}

// cellsOf returns the loads of partitions, with a cost for each.
func cellsOf(p partitions, cost func(i int) float64) partition.Loads {
	var l partition.Loads
	for i := range int(p) {
		l.Cells = append(l.Cells, partition.Cell{Range: p.part(i), Rate: cost(i)})
	}
	return l
}

// TestByLoadIsBounded: no owner has more than the factor times the mean load, with different
// loads of partitions.
func TestByLoadIsBounded(t *testing.T) {
	const owners = 20
	p, all := newByLoad(owners), partitions(owners*perOwner)
	cost := func(i int) float64 { return float64(1 + i%7) }
	a := assign(t, p, partition.Input{Members: pool(owners), Loads: cellsOf(all, cost)})
	theirs, total := make(map[leasehold.OwnerID]float64), 0.0
	for i := range int(all) {
		theirs[a.OwnerAt(all.start(i))] += cost(i)
		total += cost(i)
	}
	for owner, load := range theirs {
		if load > factor*total/owners {
			t.Errorf("%s has %.2f times the mean", owner, load/(total/owners))
		}
	}
}

// TestByLoadWithoutLoadsIsTheLibrary: before any load is reported, both assign the same.
func TestByLoadWithoutLoadsIsTheLibrary(t *testing.T) {
	in := partition.Input{Members: pool(10)}
	if !slices.Equal(assign(t, newLibrary(10), in), assign(t, newByLoad(10), in)) {
		t.Error("they differ")
	}
}

// TestByLoadLearns: the load of cells is divided by keys, hot keys belong to their partitions,
// and loads without a report stay.
func TestByLoadLearns(t *testing.T) {
	b := &byLoad{partitions: 4}
	const quarter = 1 << 62
	b.updateLoads(partition.Loads{
		Cells: []partition.Cell{{Range: leasehold.Range{Limit: 2 * quarter}, Rate: 10}, {Range: leasehold.Range{Start: 2 * quarter}, Rate: 8}},
		Hot:   []partition.HotKey{{Key: quarter + 5, Rate: 6}},
	})
	if want := []float64{2, 8, 4, 4}; !slices.Equal(b.loads, want) {
		t.Errorf("got %v, want %v", b.loads, want)
	}
	b.updateLoads(partition.Loads{Cells: []partition.Cell{
		{Range: leasehold.Range{Limit: quarter}, Rate: 1},
		{Range: leasehold.Range{Start: 3 * quarter, Limit: 3*quarter + quarter/2}, Rate: 99}, // half of it is not enough
	}})
	if want := []float64{1, 8, 4, 4}; !slices.Equal(b.loads, want) {
		t.Errorf("got %v, want %v", b.loads, want)
	}
}

// TestByLoadWithoutRoom: a partition that fits nowhere goes to the owner with the lowest load.
func TestByLoadWithoutRoom(t *testing.T) {
	places := circle(pool(3))
	if got := roomFrom(places, 0, []float64{5, 3, 4}, 1); got != 1 {
		t.Errorf("it goes to %d, want 1", got)
	}
}
