package partition_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/partition"
	"pgregory.net/rapid"
)

// drawKeys draws up to n different keys above 0, sorted. Some are close.
func drawKeys(t *rapid.T, label string, n int) []leasehold.Key {
	key := rapid.OneOf(rapid.Uint64Range(1, math.MaxUint64), rapid.Uint64Range(1, 8), rapid.Uint64Range(1<<63, 1<<63+8))
	raw := rapid.SliceOfNDistinct(key, 0, n, rapid.ID).Draw(t, label)
	slices.Sort(raw)
	keys := make([]leasehold.Key, len(raw))
	for i := range raw {
		keys[i] = leasehold.Key(raw[i])
	}
	return keys
}

// drawAssignment draws an assignment to members and to other owners.
func drawAssignment(t *rapid.T, members []partition.Member, strangers bool) partition.Assignment {
	owners := []leasehold.OwnerID{}
	for _, m := range members {
		owners = append(owners, m.Owner)
	}
	if strangers {
		owners = append(owners, "", "~gone", "~lost")
	}
	var a partition.Assignment
	for _, k := range append([]leasehold.Key{0}, drawKeys(t, "slots", 30)...) {
		a = a.Append(k, rapid.SampledFrom(owners).Draw(t, "owner"))
	}
	return a
}

// drawLoads draws loads of all keys, or of some.
func drawLoads(t *rapid.T, all bool) partition.Loads {
	rate := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, 100), rapid.Just(float64(partition.MaxRate)), rapid.Just(1.0))
	var l partition.Loads
	bounds := append([]leasehold.Key{0}, drawKeys(t, "cells", 30)...)
	for i, k := range bounds {
		r := leasehold.Range{Start: k}
		if i+1 < len(bounds) {
			r.Limit = bounds[i+1]
		}
		if all || rapid.IntRange(0, 9).Draw(t, "known") > 0 {
			l.Cells = append(l.Cells, partition.Cell{Range: r, Rate: rate.Draw(t, "rate")})
		}
	}
	for _, k := range drawKeys(t, "hot keys", 6) {
		l.Hot = append(l.Hot, partition.HotKey{Key: k, Rate: rate.Draw(t, "hot rate")})
	}
	return l
}

func drawBalanced(t *rapid.T) partition.Balanced {
	return partition.Balanced{
		Ranges:    rapid.IntRange(0, 20).Draw(t, "ranges"),
		Tolerance: rapid.SampledFrom([]float64{0, 0.03, 0.5, 1}).Draw(t, "tolerance"),
	}
}

// drawInput draws any input with at least one member.
func drawInput(t *rapid.T) partition.Input {
	in := partition.Input{Members: drawMembers(t, 8), Budget: rapid.Float64Range(0, 1).Draw(t, "budget")}
	if len(in.Members) == 0 {
		in.Members = members("only")
	}
	if rapid.Bool().Draw(t, "has current") {
		in.Current = drawAssignment(t, in.Members, true)
	}
	in.Loads = drawLoads(t, rapid.Bool().Draw(t, "all known"))
	if rapid.Bool().Draw(t, "limited") {
		in.Limits.MaxRanges = rapid.IntRange(len(in.Members), 40).Draw(t, "max ranges")
		in.Limits.MaxPerOwner = rapid.IntRange(0, 8).Draw(t, "max per owner")
	}
	return in
}

// For any input, the result is valid, every key has an owner, every
// member has keys, and a second call has the same result.
func TestBalancedIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		policy := drawBalanced(t)
		a := assign(t, policy, in)
		shares := a.Shares()
		if shares[""] > 0 {
			t.Errorf("%v of the keys have no owner", shares[""])
		}
		for _, m := range in.Members {
			if shares[m.Owner] == 0 {
				t.Errorf("%q has no keys", m.Owner)
			}
		}
		if diff := cmp.Diff(a, assign(t, policy, in)); diff != "" {
			t.Errorf("a second call has another result (-first +second):\n%s", diff)
		}
	})
}

// Keys that move between members with keys move for balancing.
func TestBalancedKeepsBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		in.Limits = partition.Limits{}
		in.Budget *= rapid.SampledFrom([]float64{1, 0.1, 0.001, 0}).Draw(t, "how much of it")
		before := in.Current.Shares()
		a := assign(t, drawBalanced(t), in)
		keys := 0.0
		for _, r := range partition.Diff(in.Current, a) {
			isMember := slices.ContainsFunc(in.Members, func(m partition.Member) bool { return m.Owner == r.From })
			if isMember && before[r.To] > 0 {
				keys += float64(r.Size())
			}
		}
		if math.Ldexp(keys, -64) > in.Budget*(1+1e-12) {
			t.Errorf("%v of the keys move, and the budget is %v", math.Ldexp(keys, -64), in.Budget)
		}
	})
}

// A decision about its own result, with the same loads, changes nothing.
func TestBalancedConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		in.Budget = 1
		policy := drawBalanced(t)
		in.Current = assign(t, policy, in)
		if diff := cmp.Diff(in.Current, assign(t, policy, in)); diff != "" {
			t.Errorf("the second decision differs (-first +second):\n%s", diff)
		}
	})
}

// costs returns the cost of each owner, as the policy computes it: where all loads are
// known, 99 parts load and 1 part keys.
func costs(l partition.Loads, a partition.Assignment) map[leasehold.OwnerID]float64 {
	total, work := 0.0, map[leasehold.OwnerID]float64{}
	for _, c := range l.Cells {
		total += c.Rate
		hot := 0.0
		for _, h := range l.Hot {
			if c.Range.Contains(h.Key) {
				hot += h.Rate
			}
		}
		scale := 1.0
		if hot > c.Rate {
			scale = c.Rate / hot
		}
		for r, o := range a.All() {
			if both, ok := r.Intersect(c.Range); ok {
				work[o] += max(0, c.Rate-hot) * float64(both.Size()) / float64(c.Range.Size())
			}
		}
		for _, h := range l.Hot {
			if c.Range.Contains(h.Key) {
				work[a.OwnerAt(h.Key)] += h.Rate * scale
			}
		}
	}
	out := a.Shares()
	for o := range out {
		if total > 0 {
			out[o] = 0.01*out[o] + 0.99*work[o]/total
		}
	}
	return out
}

// Moves for balancing do not raise the highest load, except for merges of slivers,
// up to 5 % above the mean. They add no load to members above the mean.
func TestBalancedDoesNotRaiseMaximum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := partition.Input{Members: drawMembers(t, 8), Loads: drawLoads(t, true), Budget: rapid.Float64Range(0, 1).Draw(t, "budget")}
		if len(in.Members) == 0 {
			return
		}
		in.Current = assign(t, partition.Balanced{}, partition.Input{Members: in.Members, Current: drawAssignment(t, in.Members, false)})
		a := assign(t, partition.Balanced{}, in)
		before, after := highest(in.Members, costs(in.Loads, in.Current)), highest(in.Members, costs(in.Loads, a))
		if after > max(before, 1.05)+1e-9 {
			t.Errorf("the highest load rises from %v to %v times the mean", before, after)
		}
	})
}

// highest returns the highest load per weight, relative to the mean.
func highest(members []partition.Member, loads map[leasehold.OwnerID]float64) float64 {
	weights, load, most := 0.0, 0.0, 0.0
	for _, m := range members {
		weights += m.Weight
		load += loads[m.Owner]
		most = max(most, loads[m.Owner]/m.Weight)
	}
	return most * weights / load
}

// If all keys cost the same, all members end within the
// tolerance.
func TestBalancedReachesBalance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := partition.Input{Members: drawMembers(t, 8), Budget: 1}
		if len(in.Members) == 0 {
			return
		}
		for i := range in.Members {
			in.Members[i].Weight = max(0.1, in.Members[i].Weight)
		}
		in.Current = drawAssignment(t, in.Members, true)
		for _, r := range split(leasehold.All, rapid.IntRange(1, 40).Draw(t, "cells")) {
			in.Loads.Cells = append(in.Loads.Cells, partition.Cell{Range: r, Rate: float64(r.Size()) / (1 << 60)})
		}
		if most := highest(in.Members, costs(in.Loads, assign(t, partition.Balanced{}, in))); most > 1.15+1e-9 {
			t.Errorf("the highest load is %v times the mean", most)
		}
	})
}
