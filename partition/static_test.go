package partition_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/partition"
)

func TestNewStatic(t *testing.T) {
	slots := []partition.Slot{{0, "a"}, {5, "a"}, {7, ""}, {9, "b"}}
	policy, err := partition.NewStatic(slots)
	if err != nil {
		t.Fatal(err)
	}
	slots[0].Owner = "changed afterwards"
	want := partition.Assignment{{0, "a"}, {7, ""}, {9, "b"}}
	if diff := cmp.Diff(want, policy.Slots); diff != "" {
		t.Errorf("slots (-want +got):\n%s", diff)
	}
}

func TestNewStaticErrors(t *testing.T) {
	long := leasehold.OwnerID(strings.Repeat("x", leasehold.MaxOwnerIDLen+1))
	for _, test := range []struct {
		name  string
		slots []partition.Slot
		want  string
	}{
		{
			"empty", nil,
			`new static policy: validate assignment: the assignment is empty: want at least one slot, from 0 on`,
		},
		{
			"gap at the front",
			[]partition.Slot{{7, "a"}},
			`new static policy: validate assignment "slot 0": the first slot starts at 0000000000000007, want 0`,
		},
		{
			"out of order",
			[]partition.Slot{{0, "a"}, {9, "b"}, {7, "a"}},
			`new static policy: validate assignment "slot 2": start 0000000000000007 is not after slot 1, which starts at 0000000000000009`,
		},
		{
			"out of order where slots merge",
			[]partition.Slot{{0, "a"}, {9, "a"}, {7, "b"}},
			`new static policy: validate assignment "slot 2": start 0000000000000007 is not after slot 1, which starts at 0000000000000009`,
		},
		{
			"bad name",
			[]partition.Slot{{0, long}},
			`new static policy: validate assignment "slot 0": ` + long.Validate().Error(),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := partition.NewStatic(test.slots)
			wantError(t, err, leasehold.ErrInvalid, test.want)
		})
	}
}

func TestStaticAssign(t *testing.T) {
	for _, test := range []struct {
		name    string
		members []partition.Member
		want    partition.Assignment
	}{
		{"all there", members("a", "b"), quarters},
		{"strangers get nothing", members("a", "b", "c"), quarters},
		{"b is away", members("a"), partition.Assignment{{0, "a"}, {quarter, ""}, {half, "a"}, {threeQuarter, ""}}},
		{"a is away", members("b"), partition.Assignment{{0, ""}, {quarter, "b"}, {half, ""}}},
		{"no members", nil, partition.Assignment{{0, ""}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			fixed := slices.Clone(quarters)
			got := assign(t, partition.Static{Slots: fixed}, partition.Input{Members: test.members})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("slots (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(quarters, fixed); diff != "" {
				t.Errorf("Assign changed the policy (-before +after):\n%s", diff)
			}
		})
	}
}

func TestStaticAssignErrors(t *testing.T) {
	_, err := partition.Static{}.Assign(partition.Input{})
	wantError(t, err, leasehold.ErrInvalid,
		`assign "static": validate assignment: the assignment is empty: want at least one slot, from 0 on`)

	in := partition.Input{Members: members("a", "b"), Limits: partition.Limits{MaxRanges: 3}}
	_, err = partition.Static{Slots: quarters}.Assign(in)
	wantError(t, err, leasehold.ErrLimit, `assign "static": 4 slots, and the limit is 3`)
}
