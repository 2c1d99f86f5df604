package partition

import (
	"cmp"
	"strings"

	"github.com/leasehold-dev/leasehold"
)

// A Policy assigns keys to owners. Its methods are safe
// for concurrent use, and equal inputs give equal results.
type Policy interface {
	// Name is the policy's name in configurations, such as "consistent".
	Name() string

	// Assign returns the assignment for an input, or an error. It neither
	// changes nor keeps in, and the caller may keep but not
	// change the result.
	Assign(in Input) (Assignment, error)
}

// Loadless is implemented by policies that do not depend on loads. The manager collects no
// loads for them, and does not call them when loads change.
type Loadless interface {
	Loadless() bool
}

// UsesLoads reports whether a policy depends on loads. A policy that does not implement
// [Loadless] does.
func UsesLoads(p Policy) bool {
	l, ok := p.(Loadless)
	return !ok || !l.Loadless()
}

// Loadless reports true: consistent hashing does not depend on loads.
func (Consistent) Loadless() bool { return true }

// Loadless reports true: equal slices do not depend on loads.
func (Even) Loadless() bool { return true }

// Loadless reports true: a fixed assignment does not depend on loads.
func (Static) Loadless() bool { return true }

// A Member is an owner that can get keys.
type Member struct {
	Owner leasehold.OwnerID

	// Weight is the member's capacity relative to other members: an owner of weight
	// 2 should have twice the load of one of weight 1. The default of owners is 1.
	// 0 < Weight <= MaxWeight.
	Weight float64
}

// MaxWeight is the maximum weight of a member.
const MaxWeight = 1000

// DefaultMaxRanges is the default of [Limits].MaxRanges: 16 times the ranges of
// 1,000 owners with 64 virtual nodes each.
const DefaultMaxRanges = 1 << 20

// Limits limit an assignment.
type Limits struct {
	// MaxRanges is the maximum number of slots in an assignment. Every
	// lookup stores all slots, and each may become a lease. 0 means
	// DefaultMaxRanges.
	MaxRanges int
	// MaxPerOwner is the maximum number of slots of one owner of any
	// weight: all of its leases must fit into one message. 0 means no limit.
	MaxPerOwner int
}

// perOwner returns n, limited to MaxPerOwner.
func (l Limits) perOwner(n int) int {
	if l.MaxPerOwner == 0 {
		return n
	}
	return min(n, l.MaxPerOwner)
}

func (l Limits) maxRanges() int { return cmp.Or(l.MaxRanges, DefaultMaxRanges) }

// An Input is the complete input of a policy's decision.
type Input struct {
	// Members are the owners that can get keys, sorted by Owner and without
	// duplicates.
	Members []Member

	// Current is the current assignment. It is canonical, may contain owners
	// that are not members, may have more slots than Limits allow, and
	// is nil before the first assignment.
	Current Assignment

	// Loads are the measured loads of the keys.
	Loads Loads

	// Budget is the share of all keys, 0 to 1, that may move for
	// balancing. Keys of an owner that is not a member, and the first
	// keys of a member without keys, do
	// not count.
	Budget float64

	Limits Limits
}

// ValidateInput returns an error if in is invalid: unsorted
// or duplicate members, an invalid name or weight, a negative limit, a current assignment
// that is not canonical, loads or a budget out of bounds. Every policy of this
// package calls it first.
func ValidateInput(in Input) error {
	if err := validateMembers(in.Members); err != nil {
		return err
	}
	if in.Limits.MaxRanges < 0 || in.Limits.MaxPerOwner < 0 {
		return invalidInput("limits", "max ranges is %d, max per owner %d: want 0 or more", in.Limits.MaxRanges, in.Limits.MaxPerOwner)
	}
	if !(in.Budget >= 0 && in.Budget <= 1) { // also rejects NaN
		return invalidInput("budget", "is %v, want 0 to 1: a share of all keys", in.Budget)
	}
	if err := in.Loads.Validate(); err != nil {
		return err
	}
	if in.Current == nil {
		return nil
	}
	if err := in.Current.checkCanonical(); err != nil {
		return &leasehold.Error{Op: opInput, Kind: leasehold.ErrInvalid, Subject: "current assignment", Err: err}
	}
	return nil
}

func validateMembers(members []Member) error {
	for i, m := range members {
		name := string(m.Owner)
		if err := m.Owner.Validate(); err != nil {
			return &leasehold.Error{Op: opInput, Kind: leasehold.ErrInvalid, Err: err}
		}
		if !(m.Weight > 0 && m.Weight <= MaxWeight) { // also rejects NaN
			return invalidInput(name, "weight is %v, want more than 0 and at most %d", m.Weight, MaxWeight)
		}
		if i == 0 {
			continue
		}
		switch before := members[i-1].Owner; {
		case m.Owner == before:
			return invalidInput(name, "the member is listed twice")
		case m.Owner < before:
			return invalidInput(name, "members are not sorted: the previous one is %q", before)
		}
	}
	return nil
}

const opInput = "validate partition input"

func invalidInput(subject, format string, args ...any) error {
	return leasehold.Errorf(opInput, leasehold.ErrInvalid, subject, format, args...)
}

// tooFewRanges returns the error for a MaxRanges that is less than the members need.
func tooFewRanges(policy string, in Input, need int) error {
	return leasehold.Errorf("assign", leasehold.ErrLimit, policy,
		"%d members need %d ranges, and the limit is %d", len(in.Members), need, in.Limits.maxRanges())
}

// spaceSize is the number of keys in the key space, 2^64.
const spaceSize = 1 << 64

// DefaultName is the name of the default policy.
const DefaultName = "balanced"

// Options are the options of the policies of [ByName]. A policy uses only its
// own options; 0 means the default.
type Options struct {
	VirtualNodes int     // of Adaptive and Consistent
	Ranges       int     // of Balanced
	Tolerance    float64 // of Balanced
	Slots        []Slot  // of Static
}

// Names returns the names of all policies, sorted.
func Names() []string {
	return []string{
		Adaptive{}.Name(), Balanced{}.Name(), Consistent{}.Name(), Even{}.Name(), Static{}.Name(),
	}
}

// ByName returns the policy with a name; "" means DefaultName.
// It returns an error if the options are invalid for the policy.
func ByName(name string, o Options) (Policy, error) {
	var p Policy
	var err error
	switch name {
	case "", DefaultName:
		b := Balanced{Ranges: o.Ranges, Tolerance: o.Tolerance}
		p, err = b, b.validate()
	case Adaptive{}.Name():
		p, err = Adaptive{VirtualNodes: o.VirtualNodes}, validateNodes(name, o.VirtualNodes)
	case Consistent{}.Name():
		p, err = Consistent{VirtualNodes: o.VirtualNodes}, validateNodes(name, o.VirtualNodes)
	case Even{}.Name():
		p = Even{}
	case Static{}.Name():
		p, err = NewStatic(o.Slots)
	default:
		err = leasehold.Errorf("find policy", leasehold.ErrInvalid, name,
			"the policy does not exist: want one of %s", strings.Join(Names(), ", "))
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}
