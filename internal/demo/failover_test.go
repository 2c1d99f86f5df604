package demo

import (
	"testing"

	"github.com/leasehold-dev/leasehold"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

func TestEndedWithin(t *testing.T) {
	lease := func(start, limit, generation uint64) *leaseholdv1.Lease {
		return &leaseholdv1.Lease{Start: start, Limit: limit, Generation: generation}
	}
	was := lease(100, 200, 5)
	for _, test := range []struct {
		name  string
		after []*leaseholdv1.Lease
		key   leasehold.Key
		ended bool
	}{
		{"goes on", []*leaseholdv1.Lease{lease(0, 100, 4), lease(100, 200, 5), lease(200, 0, 6)}, 0, false},
		{"was split", []*leaseholdv1.Lease{lease(0, 100, 4), lease(100, 150, 5), lease(150, 200, 5), lease(200, 0, 6)}, 0, false},
		{"ended on a part", []*leaseholdv1.Lease{lease(0, 100, 4), lease(100, 150, 5), lease(150, 0, 7)}, 150, true},
		{"ended, and nobody has it", []*leaseholdv1.Lease{lease(0, 0, 0)}, 100, true},
	} {
		var after []*leaseholdv1.HeldRange
		for _, l := range test.after {
			after = append(after, &leaseholdv1.HeldRange{Lease: l})
		}
		if key, ended := endedWithin(was, after); key != test.key || ended != test.ended {
			t.Errorf("%s: %v, %t, want %v, %t", test.name, key, ended, test.key, test.ended)
		}
	}
}
