package fleasebench

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold/flease"
)

func TestTogether(t *testing.T) {
	at := func(n int64) time.Time { return time.Unix(0, n) }
	got := together([]Batch{{3, at(1_000), at(5_000), 7}, {4, at(900), at(4_000), 1}})
	if diff := cmp.Diff(Batch{7, at(900), at(5_000), 8}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestGroups(t *testing.T) {
	const processes = 15
	group := groupOf(processes)
	for _, size := range []int{3, 4, 5, 6, 7, 8, 9, 10, 15} {
		for proposer := 1; proposer <= processes; proposer++ {
			first := group(resourceName(size, proposer, "b7", 1))
			if len(first) != size || !slices.Contains(first, flease.ID(proposer)) || !slices.IsSorted(first) || len(slices.Compact(slices.Clone(first))) != size {
				t.Errorf("invalid group of %[2]d for proposer %[1]d: %[3]v", proposer, size, first)
			}
			if other := groupOf(processes)(resourceName(size, proposer, "b8", 2)); !slices.Equal(first, other) {
				t.Errorf("the group of %d for proposer %d is %v, and %v", size, proposer, first, other)
			}
		}
	}
	for _, unknown := range []string{"", "x", "03.01", "99.01.b7.000000", "03.16.b7.000000", "00.01.b7.000000", "03.00.b7.000000", "0x.01.b7.000000", "03-01-b7-000000"} {
		if got := group(unknown); got != nil {
			t.Errorf("invalid name %q has group %v", unknown, got)
		}
	}
}
