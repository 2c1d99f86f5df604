package keyrange_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"pgregory.net/rapid"
)

func TestSetAgainstModel(t *testing.T) {
	ranges := rapid.SliceOfN(drawRange(), 0, 8)
	rapid.Check(t, func(t *rapid.T) {
		exerciseSet(t, ranges.Draw(t, "a"), ranges.Draw(t, "b"))
	})
}

// exerciseSet compares the sets of a and b, and the results of set operations, with the ranges
// themselves.
func exerciseSet(t failer, a, b []leasehold.Range) {
	t.Helper()
	edges := cuts(slices.Concat(a, b)...)
	inA := func(k leasehold.Key) bool { return anyHolds(a, k) }
	inB := func(k leasehold.Key) bool { return anyHolds(b, k) }
	check := func(what string, got keyrange.Set, want func(leasehold.Key) bool) {
		t.Helper()
		if diff := cmp.Diff(setOf(edges, want), got); diff != "" {
			t.Errorf("%s, of %v and %v (-want +got):\n%s", what, a, b, diff)
		}
	}

	sa, sb := keyrange.NewSet(a...), keyrange.NewSet(b...)
	check("union", sa.Union(sb), func(k leasehold.Key) bool { return inA(k) || inB(k) })
	check("difference", sa.Subtract(sb), func(k leasehold.Key) bool { return inA(k) && !inB(k) })
	check("gaps", sa.Gaps(), func(k leasehold.Key) bool { return !inA(k) })
	check("first set, at the end", sa, inA) // fails if an operation above has changed it
	check("second set, at the end", sb, inB)

	for i, start := range edges {
		for _, limit := range append(edges[i+1:len(edges):len(edges)], 0, start) {
			checkCovers(t, sa, leasehold.Range{Start: start, Limit: limit}, edges, inA)
		}
	}
}

func anyHolds(ranges []leasehold.Range, k leasehold.Key) bool {
	return slices.ContainsFunc(ranges, func(r leasehold.Range) bool { return holds(r, k) })
}

// setOf returns the canonical set of the keys for which in is true, nil if there are none.
func setOf(edges []leasehold.Key, in func(leasehold.Key) bool) keyrange.Set {
	var out keyrange.Set
	for _, s := range segments(edges, in) {
		if s.Value {
			out = append(out, s.Range)
		}
	}
	return out
}

func checkCovers(t failer, s keyrange.Set, r leasehold.Range, edges []leasehold.Key, in func(leasehold.Key) bool) {
	t.Helper()
	want := holds(r, r.Start) // an empty range is not covered
	for _, k := range edges {
		want = want && (in(k) || !holds(r, k))
	}
	if got := s.Covers(r); got != want {
		t.Errorf("%v.Covers(%v) = %v", s, r, got)
	}
}

func TestNewSet(t *testing.T) {
	for _, test := range []struct {
		name string
		in   []leasehold.Range
		want keyrange.Set
	}{
		{"nothing", nil, nil},
		{"only empty ranges", []leasehold.Range{{Start: 5, Limit: 5}, {Start: 9, Limit: 3}}, nil},
		{"out of order", []leasehold.Range{{Start: 7, Limit: 9}, {Start: 1, Limit: 3}}, keyrange.Set{{Start: 1, Limit: 3}, {Start: 7, Limit: 9}}},
		{"touching", []leasehold.Range{{Start: 1, Limit: 3}, {Start: 3, Limit: 9}}, keyrange.Set{{Start: 1, Limit: 9}}},
		{"one key apart", []leasehold.Range{{Start: 1, Limit: 3}, {Start: 4, Limit: 9}}, keyrange.Set{{Start: 1, Limit: 3}, {Start: 4, Limit: 9}}},
		{"nested", []leasehold.Range{{Start: 1, Limit: 9}, {Start: 3, Limit: 4}}, keyrange.Set{{Start: 1, Limit: 9}}},
		{"beyond the end", []leasehold.Range{{Start: 5}, {Start: 7, Limit: 9}, {Start: lastKey}}, keyrange.Set{{Start: 5}}},
		{"all, in two", []leasehold.Range{{Start: 5}, {Start: 0, Limit: 5}}, keyrange.Set{leasehold.All}},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := slices.Clone(test.in)
			if diff := cmp.Diff(test.want, keyrange.NewSet(test.in...)); diff != "" {
				t.Errorf("the set (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, test.in); diff != "" {
				t.Errorf("the argument has changed (-before +after):\n%s", diff)
			}
		})
	}
}
