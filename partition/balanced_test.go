package partition_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/partition"
	"pgregory.net/rapid"
)

func TestBalancedWithoutMembers(t *testing.T) {
	got := assign(t, partition.Balanced{}, partition.Input{Current: quarters})
	if diff := cmp.Diff(partition.Assignment{{0, ""}}, got); diff != "" {
		t.Errorf("without members (-want +got):\n%s", diff)
	}
}

// Initially, shares of keys are exactly proportional to weights.
func TestBalancedInitialShares(t *testing.T) {
	in := partition.Input{Members: pool(7)}
	weights := []float64{0.001, 0.5, 1, 1, 2, 100, 1000}
	total := 0.0
	for i, w := range weights {
		in.Members[i].Weight = w
		total += w
	}
	a := assign(t, partition.Balanced{}, in)
	for i, w := range weights {
		if share := a.Share(in.Members[i].Owner); math.Abs(share/(w/total)-1) > 1e-9 {
			t.Errorf("weight %v has %v times its share", w, share/(w/total))
		}
	}
}

func TestBalancedInitialTableLength(t *testing.T) {
	a := assign(t, partition.Balanced{}, partition.Input{Members: pool(100)})
	if len(a) > 1600 || len(a) < 1500 {
		t.Errorf("%d ranges, want a little less than 1600: some adjacent ranges are merged", len(a))
	}
	around := map[leasehold.OwnerID]bool{}
	for i, slot := range a {
		if slot.Owner == "server-00042" {
			around[a[max(0, i-1)].Owner], around[a[min(len(a)-1, i+1)].Owner] = true, true
		}
	}
	if len(around) < 20 {
		t.Errorf("an owner has only %d neighbours", len(around))
	}
}

// An owner that joins takes its share, and moves no key between the others.
func TestBalancedJoin(t *testing.T) {
	for _, n := range []int{1, 2, 3, 10, 100, 250} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			before := assign(t, partition.Balanced{}, partition.Input{Members: pool(n)})
			all := pool(n + 1)
			newcomer := all[n].Owner
			after := assign(t, partition.Balanced{}, partition.Input{Members: all, Current: before})
			ranges := 0
			for range after.Ranges(newcomer) {
				ranges++
			}
			if ratio := after.Share(newcomer) * float64(n+1); ratio < 0.95 || ratio > 1.06 || ranges > 20 {
				t.Errorf("the new member has %.3f times its share, in %d ranges", ratio, ranges)
			}
			for _, r := range partition.Diff(before, after) {
				if r.To != newcomer {
					t.Errorf("%v moves from %s to %s", r.Range, r.From, r.To)
				}
			}
			if most := shareOverMean(all, after); most > 1.10 {
				t.Errorf("the largest share is %.3f times the mean", most)
			}
		})
	}
}

// The keys of a leaving owner move to many others, and no other key moves.
func TestBalancedLeave(t *testing.T) {
	for _, n := range []int{2, 3, 10, 100, 250} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			before := assign(t, partition.Balanced{}, partition.Input{Members: pool(n)})
			left := pool(n)[1:]
			after := assign(t, partition.Balanced{}, partition.Input{Members: left, Current: before})
			for _, r := range partition.Diff(before, after) {
				if r.From != pool(n)[0].Owner {
					t.Errorf("%v moves from %s to %s", r.Range, r.From, r.To)
				}
			}
			if most := shareOverMean(left, after); most > 1.08 {
				t.Errorf("the largest share is %.3f times the mean", most)
			}
			if len(after) > len(before)+20 {
				t.Errorf("%d ranges become %d", len(before), len(after))
			}
		})
	}
}

// If one member leaves and another joins, no key of the other members moves.
func TestBalancedReplacement(t *testing.T) {
	before := assign(t, partition.Balanced{}, partition.Input{Members: pool(50)})
	in := partition.Input{Members: pool(51)[1:], Current: before}
	for _, r := range partition.Diff(before, assign(t, partition.Balanced{}, in)) {
		if r.From != "server-00000" || r.To != "server-00050" {
			t.Errorf("%v moves from %s to %s", r.Range, r.From, r.To)
		}
	}
}

// For any loads, a join or leave moves no key between other members, if
// the budget is 0.
func TestBalancedMovesMinimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		in.Budget, in.Limits = 0, partition.Limits{}
		before := in.Current.Shares()
		for _, r := range partition.Diff(in.Current, assign(t, drawBalanced(t), in)) {
			stayed := slices.ContainsFunc(in.Members, func(m partition.Member) bool { return m.Owner == r.From })
			if stayed && before[r.To] > 0 {
				t.Errorf("%v moves from %q to %q", r.Range, r.From, r.To)
			}
		}
	})
}

// A pool that grows one by one, and shrinks again, stays balanced, and its table
// stays short.
func TestBalancedGrowsAndShrinks(t *testing.T) {
	var a partition.Assignment
	step := func(n int) {
		in := partition.Input{Members: pool(n), Current: a}
		a = assign(t, partition.Balanced{}, in)
		if most := shareOverMean(in.Members, a); most > 1.3 {
			t.Errorf("with %d members, the largest share is %.3f times the mean", n, most)
		}
		if len(a) > 40*n {
			t.Errorf("%d members have %d ranges", n, len(a))
		}
	}
	for n := 1; n <= 60; n++ {
		step(n)
	}
	for n := 59; n >= 1; n-- {
		step(n)
	}
}

// With too few known loads, no keys move for balancing.
func TestBalancedWaitsForLoads(t *testing.T) {
	in := partition.Input{Members: pool(10), Budget: 1}
	in.Current = assign(t, partition.Balanced{}, in)
	all := cellsOf(in.Current, 4).Cells
	for i := range all {
		all[i].Rate *= float64(i)
	}
	in.Loads.Cells = all[:len(all)*8/10]
	if diff := cmp.Diff(in.Current, assign(t, partition.Balanced{}, in)); diff != "" {
		t.Errorf("with 80 %% of the loads known (-before +after):\n%s", diff)
	}
	in.Loads.Cells = all[:len(all)*95/100]
	if after := assign(t, partition.Balanced{}, in); partition.Moved(in.Current, after) == 0 {
		t.Error("with 95 % of the loads known, no keys move")
	}
}

// No keys move within the tolerance; if one member is beyond it, members
// near it give keys away, too, and all end well within.
func TestBalancedHysteresis(t *testing.T) {
	in := partition.Input{Members: pool(20), Budget: 1}
	in.Current = assign(t, partition.Balanced{}, in)
	with := func(first, second float64) partition.Loads {
		l := cellsOf(in.Current, 8)
		for i, c := range l.Cells {
			switch in.Current.OwnerAt(c.Range.Start) {
			case in.Members[0].Owner:
				l.Cells[i].Rate *= first
			case in.Members[1].Owner:
				l.Cells[i].Rate *= second
			}
		}
		return l
	}
	in.Loads = with(1.13, 1.13)
	if share := partition.Moved(in.Current, assign(t, partition.Balanced{}, in)); share > 0 {
		t.Errorf("within the tolerance, %v of the keys move", share)
	}
	in.Loads = with(1.3, 1.13)
	a := assign(t, partition.Balanced{}, in)
	if most := highest(in.Members, costs(in.Loads, a)); most > 1.07 {
		t.Errorf("the highest load is still %.3f times the mean", most)
	}
	if share := partition.Moved(in.Current, a); share > 0.03 {
		t.Errorf("%v of the keys move for 1.7 %% of the load", share)
	}
}

func TestBalancedErrors(t *testing.T) {
	for _, test := range []struct {
		policy partition.Balanced
		limit  int
		kind   leasehold.Kind
		want   string
	}{
		{partition.Balanced{Ranges: -1}, 0, leasehold.ErrInvalid, `assign "balanced": -1 ranges per owner, want 1 to 4096, or 0 for 16`},
		{partition.Balanced{Ranges: 4097}, 0, leasehold.ErrInvalid, `assign "balanced": 4097 ranges per owner, want 1 to 4096, or 0 for 16`},
		{partition.Balanced{Tolerance: math.NaN()}, 0, leasehold.ErrInvalid, `assign "balanced": tolerance is NaN, want 0.03 to 1, or 0 for 0.15`},
		{partition.Balanced{Tolerance: -0.1}, 0, leasehold.ErrInvalid, `assign "balanced": tolerance is -0.1, want 0.03 to 1, or 0 for 0.15`},
		{partition.Balanced{}, 2, leasehold.ErrLimit, `assign "balanced": 3 members need 3 ranges, and the limit is 2`},
		{partition.Balanced{}, 3, 0, ""},
	} {
		in := partition.Input{Members: pool(3), Limits: partition.Limits{MaxRanges: test.limit}}
		_, err := test.policy.Assign(in)
		wantError(t, err, test.kind, test.want)
	}
}

// shareOverMean returns the highest share of keys per weight, relative to the mean.
func shareOverMean(members []partition.Member, a partition.Assignment) float64 {
	return highest(members, a.Shares())
}
