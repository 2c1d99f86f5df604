package partition_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/partition"
	"pgregory.net/rapid"
)

// Without loads, Adaptive equals Consistent, also at joins and leaves.
func TestAdaptiveWithoutLoadsIsConsistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 20).Draw(t, "nodes")
		all := drawMembers(t, 8)
		var current partition.Assignment
		for range rapid.IntRange(1, 4).Draw(t, "steps") {
			in := partition.Input{Current: current, Budget: 1}
			for _, m := range all {
				if rapid.Bool().Draw(t, "is there") {
					in.Members = append(in.Members, m)
				}
			}
			want := assign(t, partition.Consistent{VirtualNodes: nodes}, in)
			current = assign(t, partition.Adaptive{VirtualNodes: nodes}, in)
			if diff := cmp.Diff(want, current); diff != "" {
				t.Fatalf("Adaptive differs from Consistent (-want +got):\n%s", diff)
			}
		}
	})
}

// evenLoads returns loads with equal costs of all keys.
func evenLoads() partition.Loads {
	return partition.Loads{Cells: []partition.Cell{{Range: leasehold.All, Rate: 1000}}}
}

// Centrifuge 2.1.2: a member more than 10 % above the mean loses a virtual
// node, a member more than 10 % below gains one. Here keys cost the same, so
// that shares must converge within that.
func TestAdaptiveEvensOut(t *testing.T) {
	for _, n := range []int{2, 3, 5, 20} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			in := partition.Input{Members: pool(n), Loads: evenLoads(), Budget: 1}
			in.Members[1].Weight = 2
			in.Current = assign(t, partition.Adaptive{}, in)
			before, decisions := shareOverMean(in.Members, in.Current), 0
			for ; decisions < 100; decisions++ {
				next := assign(t, partition.Adaptive{}, in)
				if cmp.Equal(next, in.Current) {
					break
				}
				in.Current = next
			}
			after := shareOverMean(in.Members, in.Current)
			t.Logf("from %.3f to %.3f times the mean in %d decisions", before, after, decisions)
			if after > 1.1 || decisions == 100 {
				t.Errorf("want less than 1.1 after at most 100 decisions")
			}
		})
	}
}

// An increased weight takes many steps, and each has an effect.
func TestAdaptiveFollowsWeights(t *testing.T) {
	in := partition.Input{Members: pool(3), Loads: evenLoads(), Budget: 1}
	in.Current = assign(t, partition.Adaptive{}, in)
	in.Members[1].Weight = 4
	for range 200 {
		in.Current = assign(t, partition.Adaptive{}, in)
	}
	if most := shareOverMean(in.Members, in.Current); most > 1.1 {
		t.Errorf("the highest load is %.3f times the mean", most)
	}
}

// With two members, every second point is within its member's own slots, where it
// has no effect. Gaining must not end at one of them.
func TestAdaptiveOfTwo(t *testing.T) {
	for i := range 30 {
		in := partition.Input{Members: pool(2 * (i + 1))[2*i:], Budget: 1}
		in.Current = assign(t, partition.Adaptive{}, in)
		in.Loads.Cells = []partition.Cell{{Range: leasehold.Range{Limit: half}, Rate: 3}, {Range: leasehold.Range{Start: half}, Rate: 1}}
		for range 100 {
			in.Current = assign(t, partition.Adaptive{}, in)
		}
		if most := highest(in.Members, costs(in.Loads, in.Current)); most > 1.12 {
			t.Errorf("pair %d: the highest load is %.3f times the mean", i, most)
		}
	}
}

// The number of virtual nodes stays about constant, and so does the number of ranges.
func TestAdaptiveKeepsTotal(t *testing.T) {
	in := partition.Input{Members: pool(20), Loads: evenLoads(), Budget: 1}
	in.Current = assign(t, partition.Adaptive{}, in)
	before := len(in.Current)
	for range 50 {
		in.Current = assign(t, partition.Adaptive{}, in)
	}
	if n := len(in.Current); n < before*95/100 || n > before*105/100 {
		t.Errorf("%d ranges become %d", before, n)
	}
}

func TestAdaptiveKeepsBudget(t *testing.T) {
	in := partition.Input{Members: pool(50), Loads: evenLoads()}
	in.Current = assign(t, partition.Adaptive{}, in)
	for _, budget := range []float64{0, 0.0001, 0.001, 0.01} {
		in.Budget = budget
		share := partition.Moved(in.Current, assign(t, partition.Adaptive{}, in))
		if share > budget || share == 0 && budget >= 0.001 {
			t.Errorf("with a budget of %v, %v of the keys move", budget, share)
		}
	}
}

func TestAdaptiveWaitsForLoads(t *testing.T) {
	in := partition.Input{Members: pool(20), Budget: 1}
	in.Current = assign(t, partition.Adaptive{}, in)
	in.Loads.Cells = []partition.Cell{{Range: leasehold.Range{Limit: half + half/2}, Rate: 1}}
	if diff := cmp.Diff(in.Current, assign(t, partition.Adaptive{}, in)); diff != "" {
		t.Errorf("with the loads of three quarters of the keys (-before +after):\n%s", diff)
	}
}

// Counts that loads have changed are derived from the assignment: joins
// and leaves do not reset them.
func TestAdaptiveDerivesCounts(t *testing.T) {
	in := partition.Input{Members: pool(20), Loads: evenLoads(), Budget: 1}
	in.Current = assign(t, partition.Adaptive{}, in)
	for range 30 {
		in.Current = assign(t, partition.Adaptive{}, in)
	}
	in.Loads = partition.Loads{}
	if diff := cmp.Diff(in.Current, assign(t, partition.Adaptive{}, in)); diff != "" {
		t.Errorf("the assignment changes without loads (-before +after):\n%s", diff)
	}
	before := in.Current
	in.Members = pool(21)
	after := assign(t, partition.Adaptive{}, in)
	for _, r := range partition.Diff(before, after) {
		if r.To != "server-00020" {
			t.Errorf("%v moves from %s to %s", r.Range, r.From, r.To)
		}
	}
	in.Current, in.Members = after, pool(20)
	if diff := cmp.Diff(before, assign(t, partition.Adaptive{}, in)); diff != "" {
		t.Errorf("a join and leave has changed the assignment (-before +after):\n%s", diff)
	}
}

// For any current assignment, the result is valid and every key has an owner.
func TestAdaptiveIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		if in.Limits.MaxRanges > 0 {
			in.Limits.MaxRanges++ // for the arc that wraps
			in.Limits.MaxPerOwner = max(2, in.Limits.MaxPerOwner)
		}
		policy := partition.Adaptive{VirtualNodes: rapid.IntRange(0, 20).Draw(t, "nodes")}
		if share := assign(t, policy, in).Share(""); share > 0 {
			t.Errorf("%v of the keys have no owner", share)
		}
	})
}

func TestAdaptiveErrors(t *testing.T) {
	_, err := partition.Adaptive{VirtualNodes: -1}.Assign(partition.Input{Members: pool(1)})
	wantError(t, err, leasehold.ErrInvalid, `assign "adaptive": -1 virtual nodes, want 1 to 4096, or 0 for 64`)
}
