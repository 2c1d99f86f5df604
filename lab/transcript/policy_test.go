package transcript

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/partition"
)

// scriptedPolicy assigns the script's plan.
type scriptedPolicy struct {
	world *world
	plan  []planned // nil: equal parts
}

type planned struct {
	owner  leasehold.OwnerID
	lo, hi uint64 // units
}

func (*scriptedPolicy) Name() string { return "scripted" }

// Partial returns true: a plan may leave units without an owner.
func (*scriptedPolicy) Partial() bool { return true }

func (p *scriptedPolicy) Assign(in partition.Input) (partition.Assignment, error) {
	if p.plan == nil {
		return partition.Even{}.Assign(in)
	}
	var a partition.Assignment
	for u := range p.world.units {
		a = a.Append(p.world.key(u), p.at(u, in.Members))
	}
	return a, nil
}

func (p *scriptedPolicy) at(u uint64, members []partition.Member) leasehold.OwnerID {
	for _, s := range p.plan {
		there := slices.ContainsFunc(members, func(m partition.Member) bool { return m.Owner == s.owner })
		if s.lo <= u && u < s.hi && there {
			return s.owner
		}
	}
	return ""
}
