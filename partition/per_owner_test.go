package partition_test

import (
	"errors"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/partition"
)

// All leases of an owner go into one message: however heavy it is, it gets no
// more slots than that holds, and no policy is believed that gives it more.
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
	// One member has the arc that goes round, which is two slots: the policy must keep to the limit that it is judged by.
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
		t.Errorf("two slots where one is allowed: %v", err)
	}
	in.Limits.MaxPerOwner = 2
	if err := partition.Validate(in, three); err != nil {
		t.Errorf("two slots where two are allowed: %v", err)
	}
}
