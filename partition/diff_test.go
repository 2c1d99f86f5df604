package partition_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/partition"
	"pgregory.net/rapid"
)

func TestDiff(t *testing.T) {
	for _, test := range []struct {
		name     string
		from, to partition.Assignment
		want     []partition.Reassigned
		moved    float64
	}{
		{"equal", quarters, quarters, nil, 0},
		{"nothing yet", nil, nil, nil, 0},
		{
			"the first", nil,
			partition.Assignment{{0, "a"}, {half, "b"}},
			[]partition.Reassigned{{leasehold.Range{Limit: half}, "", "a"}, {leasehold.Range{Start: half}, "", "b"}},
			0,
		},
		{
			"adjacent ranges of one move are merged",
			partition.Assignment{{0, "a"}, {half, "b"}},
			partition.Assignment{{0, "b"}, {quarter, "c"}, {threeQuarter, "a"}},
			[]partition.Reassigned{
				{leasehold.Range{Limit: quarter}, "a", "b"},
				{leasehold.Range{Start: quarter, Limit: half}, "a", "c"},
				{leasehold.Range{Start: half, Limit: threeQuarter}, "b", "c"},
				{leasehold.Range{Start: threeQuarter}, "b", "a"},
			},
			1,
		},
		{
			"to no owner",
			partition.Assignment{{0, "a"}},
			nil,
			[]partition.Reassigned{{leasehold.All, "a", ""}},
			1,
		},
		{
			"one key",
			partition.Assignment{{0, "a"}},
			partition.Assignment{{0, "a"}, {5, "b"}, {6, "a"}},
			[]partition.Reassigned{{leasehold.Range{Start: 5, Limit: 6}, "a", "b"}},
			math.Ldexp(1, -64),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, partition.Diff(test.from, test.to)); diff != "" {
				t.Errorf("reassigned (-want +got):\n%s", diff)
			}
			if got := partition.Moved(test.from, test.to); got != test.moved {
				t.Errorf("%v of the keys move, want %v", got, test.moved)
			}
		})
	}
}

// Applying Diff to the first assignment results in the second.
func TestDiffIsComplete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := members("a", "b", "c")
		from, to := drawAssignment(t, ms, true), drawAssignment(t, ms, true)
		changes := partition.Diff(from, to)
		for _, slot := range append(append(partition.Assignment{}, from...), to...) {
			for _, k := range []leasehold.Key{slot.Start, slot.Start - 1} {
				got := from.OwnerAt(k)
				for _, r := range changes {
					if r.Contains(k) {
						if r.From != got {
							t.Errorf("From of %v is %q, but its owner is %q", k, r.From, got)
						}
						got = r.To
						break
					}
				}
				if got != to.OwnerAt(k) {
					t.Errorf("%v ends with %q, want %q", k, got, to.OwnerAt(k))
				}
			}
		}
	})
}
