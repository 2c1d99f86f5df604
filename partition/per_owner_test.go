package partition_test

import (
	"errors"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/partition"
)

// All leases of an owner must fit into one message: an owner of any weight gets at most
// MaxPerOwner slots, and Validate rejects more.
func TestMaxPerOwner(t *testing.T) {
	in := partition.Input{
		Members: []partition.Member{{Owner: "heavy", Weight: 1000}, {Owner: "light", Weight: 1}},
		Limits:  partition.Limits{MaxPerOwner: 100},
	}
	a, err := partition.Consistent{VirtualNodes: 64}.Assign(in)
	if err != nil {
		t.Fatal(err)
	}
	slots := map[leasehold.OwnerID]int{}
	for _, s := range a {
		slots[s.Owner]++
	}
	if slots["heavy"] > 100 || slots["heavy"] < 30 || slots["light"] == 0 {
		t.Errorf("the slots are %v, want at most 100 each", slots)
	}
	// One member has the arc that wraps, which is two slots: the policy must keep the limit of Validate.
	for most := 2; most < 40; most++ {
		in := partition.Input{Members: []partition.Member{{Owner: "a", Weight: 1000}, {Owner: "b", Weight: 1000}}, Limits: partition.Limits{MaxPerOwner: most}}
		a, err := partition.Consistent{VirtualNodes: 64}.Assign(in)
		if err != nil {
			t.Fatal(err)
		}
		if err := partition.Validate(in, a); err != nil {
			t.Errorf("with at most %d slots: %v", most, err)
		}
	}

	in.Limits.MaxPerOwner = 1
	three := partition.Assignment{{Start: 0, Owner: "heavy"}, {Start: 1, Owner: "light"}, {Start: 2, Owner: "heavy"}}
	if err := partition.Validate(in, three); !errors.Is(err, leasehold.ErrLimit) {
		t.Errorf("two slots with a limit of one: %v", err)
	}
	in.Limits.MaxPerOwner = 2
	if err := partition.Validate(in, three); err != nil {
		t.Errorf("two slots with a limit of two: %v", err)
	}
}
