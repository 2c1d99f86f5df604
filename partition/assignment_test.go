package partition_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/partition"
)

const (
	quarter      = 1 << 62
	half         = 1 << 63
	threeQuarter = half + quarter
	lastKey      = 1<<64 - 1
)

// quarters assigns quarters of the key space to a, b, a and no owner.
var quarters = partition.Assignment{{0, "a"}, {quarter, "b"}, {half, "a"}, {threeQuarter, ""}}

func TestAppendMergesAdjacentSlots(t *testing.T) {
	var a partition.Assignment
	a = a.Append(0, "a").Append(5, "a").Append(7, "b").Append(9, "").Append(11, "").Append(12, "a")
	want := partition.Assignment{{0, "a"}, {7, "b"}, {9, ""}, {12, "a"}}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Errorf("wrong slots (-want +got):\n%s", diff)
	}
}

func TestOwnerAt(t *testing.T) {
	for _, test := range []struct {
		key  leasehold.Key
		want leasehold.OwnerID
	}{
		{0, "a"},
		{1, "a"},
		{quarter - 1, "a"},
		{quarter, "b"},
		{half - 1, "b"},
		{half, "a"},
		{threeQuarter - 1, "a"},
		{threeQuarter, ""},
		{lastKey, ""},
	} {
		if got := quarters.OwnerAt(test.key); got != test.want {
			t.Errorf("OwnerAt(%v) = %q, want %q", test.key, got, test.want)
		}
	}
	if got := (partition.Assignment{{0, "a"}}).OwnerAt(lastKey); got != "a" {
		t.Errorf("the owner of the last key is %q", got)
	}
	if got := partition.Assignment(nil).OwnerAt(7); got != "" {
		t.Errorf("a key of the nil assignment has owner %q", got)
	}
}

func TestRanges(t *testing.T) {
	for owner, want := range map[leasehold.OwnerID][]leasehold.Range{
		"a": {{Start: 0, Limit: quarter}, {Start: half, Limit: threeQuarter}},
		"b": {{Start: quarter, Limit: half}},
		"":  {{Start: threeQuarter, Limit: 0}},
		"c": nil,
	} {
		if diff := cmp.Diff(want, slices.Collect(quarters.Ranges(owner))); diff != "" {
			t.Errorf("ranges of %q (-want +got):\n%s", owner, diff)
		}
	}
}

func TestIteratorsStop(t *testing.T) {
	seen := 0
	for range quarters.Ranges("a") {
		seen++
		break
	}
	for range quarters.All() {
		seen++
		break
	}
	if seen != 2 {
		t.Errorf("saw %d ranges after two early stops", seen)
	}
}

func TestShares(t *testing.T) {
	want := map[leasehold.OwnerID]float64{"a": 0.5, "b": 0.25, "": 0.25}
	if diff := cmp.Diff(want, quarters.Shares()); diff != "" {
		t.Errorf("shares (-want +got):\n%s", diff)
	}
	for owner, share := range want {
		if got := quarters.Share(owner); got != share {
			t.Errorf("Share(%q) = %v, want %v", owner, got, share)
		}
	}
	if got := (partition.Assignment{{0, "a"}}).Share("a"); got != 1 {
		t.Errorf("the owner of all keys has share %v", got)
	}
	if got := partition.Assignment(nil).Share("a"); got != 0 {
		t.Errorf("in the nil assignment a has share %v", got)
	}
}
