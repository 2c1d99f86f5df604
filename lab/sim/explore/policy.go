package explore

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/partition"
)

// middle is where the second of the two ranges begins.
const middle leasehold.Key = 1 << 63

// halves is a policy for two owners and two ranges: who is alone has both, and who joins
// gets one. It does not go by names, so that owners can be taken for each other; only
// if both are new, and nobody has anything, the first by name gets the first range.
type halves struct{}

func (halves) Name() string { return "halves" }

func (halves) Assign(in partition.Input) (partition.Assignment, error) {
	switch len(in.Members) {
	case 0:
		return partition.Assignment{{Start: 0}}, nil
	case 1:
		return partition.Assignment{{Start: 0, Owner: in.Members[0].Owner}}, nil
	}
	first, second := in.Members[0].Owner, in.Members[1].Owner
	low, high := has(in.Current, 0), has(in.Current, middle)
	if low == second || high == first && low != first {
		first, second = second, first
	}
	return partition.Assignment{{Start: 0, Owner: first}, {Start: middle, Owner: second}}, nil
}

// has is whose a key is.
func has(a partition.Assignment, k leasehold.Key) leasehold.OwnerID {
	var owner leasehold.OwnerID
	for _, slot := range a {
		if slot.Start <= k {
			owner = slot.Owner
		}
	}
	return owner
}
