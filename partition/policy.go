package partition

import (
	"cmp"
	"strings"

	"github.com/leasehold-dev/leasehold"
)

// A Policy decides which owner should have which keys. Its methods are safe
// for concurrent use, and equal inputs give equal results.
type Policy interface {
	// Name is what configuration calls this policy, such as "consistent".
	Name() string

	// Assign returns the assignment that in asks for, or an error if there is
	// none. It neither changes nor keeps in, and the caller may keep but not
	// change the result.
	Assign(in Input) (Assignment, error)
}

// Loadless is implemented by policies that do not look at loads. No loads are
// gathered for them, and changed loads are no reason for a decision.
type Loadless interface {
	Loadless() bool
}

// UsesLoads reports whether a policy looks at loads. One that does not say is
// taken to.
func UsesLoads(p Policy) bool {
	l, says := p.(Loadless)
	return !says || !l.Loadless()
}

// Loadless reports that consistent hashing does not look at loads.
func (Consistent) Loadless() bool { return true }

// Loadless reports that equal slices do not look at loads.
func (Even) Loadless() bool { return true }

// Loadless reports that what was fixed beforehand does not depend on loads.
func (Static) Loadless() bool { return true }

// A Member is an owner that can be given keys.
type Member struct {
	Owner leasehold.OwnerID

	// Weight is the member's share of the pool's capacity: an owner of weight
	// 2 should carry twice the load of one of weight 1. 1 is usual.
	// 0 < Weight <= MaxWeight.
	Weight float64
}

// MaxWeight is the greatest weight of a member.
const MaxWeight = 1000

// DefaultMaxRanges is the limit on ranges where none is set: 16 times what
// 1,000 owners with 64 virtual nodes each need.
const DefaultMaxRanges = 1 << 20

// Limits bound what a policy may ask for.
type Limits struct {
	// MaxRanges is the greatest number of slots in an assignment. Every
	// lookup holds all of them, and every one may become a lease. 0 means
	// DefaultMaxRanges.
	MaxRanges int
	// MaxPerOwner is the greatest number of slots of one owner, whatever its
	// weight: all its leases must fit into one message. 0 means no limit.
	MaxPerOwner int
}

// perOwner lowers a number of slots of one owner to the limit.
func (l Limits) perOwner(n int) int {
	if l.MaxPerOwner == 0 {
		return n
	}
	return min(n, l.MaxPerOwner)
}

func (l Limits) maxRanges() int { return cmp.Or(l.MaxRanges, DefaultMaxRanges) }

// An Input is all that a policy may base its decision on.
type Input struct {
	// Members are the owners that can be given keys, sorted by Owner, each
	// once.
	Members []Member

	// Current is the assignment in force. It is canonical, may name owners
	// that are no longer members, may have more slots than Limits allow, and
	// is nil if nothing has been assigned yet.
	Current Assignment

	// Loads is what the keys cost, as far as it is known.
	Loads Loads

	// Budget is the share of all keys, 0 to 1, that may change their owner for
	// the sake of balance. What must find a new owner, because its own is no
	// member any more, and what a member without keys needs to begin with, does
	// not count.
	Budget float64

	Limits Limits
}

// ValidateInput reports what is wrong with in: members that are out of order
// or twice there, a bad name or weight, a negative limit, a current assignment
// that is not canonical, loads or a budget out of bounds. Every policy of this
// package calls it first.
func ValidateInput(in Input) error {
	if err := validateMembers(in.Members); err != nil {
		return err
	}
	if in.Limits.MaxRanges < 0 || in.Limits.MaxPerOwner < 0 {
		return invalidInput("limits", "max ranges is %d, and %d per owner: they must not be negative", in.Limits.MaxRanges, in.Limits.MaxPerOwner)
	}
	if !(in.Budget >= 0 && in.Budget <= 1) { // so written, NaN fails
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
		if !(m.Weight > 0 && m.Weight <= MaxWeight) { // written so that NaN fails
			return invalidInput(name, "weight is %v, want more than 0 and at most %d", m.Weight, MaxWeight)
		}
		if i == 0 {
			continue
		}
		switch before := members[i-1].Owner; {
		case m.Owner == before:
			return invalidInput(name, "the member is listed twice")
		case m.Owner < before:
			return invalidInput(name, "members are not sorted: it comes after %q", before)
		}
	}
	return nil
}

const opInput = "validate partition input"

func invalidInput(subject, format string, args ...any) error {
	return leasehold.Errorf(opInput, leasehold.ErrInvalid, subject, format, args...)
}

// tooFewRanges is the error of a policy that cannot keep to the limit.
func tooFewRanges(policy string, in Input, need int) error {
	return leasehold.Errorf("assign", leasehold.ErrLimit, policy,
		"%d members need %d ranges, and the limit is %d", len(in.Members), need, in.Limits.maxRanges())
}

// spaceSize is the number of keys in the key space, 2^64.
const spaceSize = 1 << 64

// DefaultName is the name of the policy where none is named.
const DefaultName = "balanced"

// Options are the settings of all policies by name. A policy looks only at its
// own, and 0 always means its default.
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

// ByName returns the policy that configuration calls name; "" is DefaultName.
// Options that the policy would refuse are refused here.
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
			"there is no such policy; want one of %s", strings.Join(Names(), ", "))
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}
