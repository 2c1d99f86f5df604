package partition

import (
	"fmt"

	"github.com/leasehold-dev/leasehold"
)

// Partial is implemented by policies that may leave keys without an owner although
// there are members. For other policies that is an error.
type Partial interface {
	Partial() bool
}

// Apply calls a policy and checks the result. It fails if the
// policy fails or panics, if [Validate] rejects the assignment, or if that leaves
// keys without an owner although there are members, unless the policy is [Partial].
func Apply(p Policy, in Input) (a Assignment, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			a, err = nil, leasehold.Errorf(opApply, leasehold.ErrInternal, nameOf(p), "the policy panicked: %v", panicked)
		}
	}()
	a, err = p.Assign(in)
	if err != nil {
		return nil, err
	}
	if err := Validate(in, a); err != nil {
		return nil, &leasehold.Error{Op: opApply, Kind: leasehold.KindOf(err), Subject: p.Name(), Err: err}
	}
	if partial, ok := p.(Partial); len(in.Members) == 0 || ok && partial.Partial() {
		return a, nil
	}
	for r := range a.Ranges("") {
		return nil, leasehold.Errorf(opApply, leasehold.ErrInvalid, p.Name(), "the assignment is incomplete: %v has no owner although there are %d members", r, len(in.Members))
	}
	return a, nil
}

const opApply = "apply policy"

// nameOf returns the policy's name, or its type if Name panics.
func nameOf(p Policy) (name string) {
	defer func() {
		if recover() != nil {
			name = fmt.Sprintf("%T", p)
		}
	}()
	return p.Name()
}

const opAssignment = "validate assignment"

// Validate returns an error if a is not a valid result for in: if it is not
// canonical, contains an owner that is not a member, or has more slots than the
// limits allow. Keys without an owner are valid.
//
// Every assignment is validated before use, because
// policies of other packages may be wrong. The members of in must be
// valid according to [ValidateInput].
func Validate(in Input, a Assignment) error {
	if limit := in.Limits.maxRanges(); len(a) > limit {
		return leasehold.Errorf(opAssignment, leasehold.ErrLimit, "", "%d slots, and the limit is %d", len(a), limit)
	}
	if err := a.checkCanonical(); err != nil {
		return err
	}
	slots := make(map[leasehold.OwnerID]*int, len(in.Members)+1) // pointers need one map access per slot
	slots[""] = new(int)
	for _, m := range in.Members {
		slots[m.Owner] = new(int)
	}
	for i := range a {
		owner := a[i].Owner
		n, ok := slots[owner]
		if !ok {
			return badSlot(i, "owner %q is not a member", owner)
		}
		if *n++; owner != "" && in.Limits.perOwner(*n) < *n {
			return leasehold.Errorf(opAssignment, leasehold.ErrLimit, string(owner), "more than %d slots, the limit", in.Limits.MaxPerOwner)
		}
	}
	return nil
}

// memberSet returns the valid owners of slots: the members and "".
func memberSet(members []Member) map[leasehold.OwnerID]struct{} {
	set := make(map[leasehold.OwnerID]struct{}, len(members)+1)
	set[""] = struct{}{}
	for _, m := range members {
		set[m.Owner] = struct{}{}
	}
	return set
}

// checkCanonical returns an error if a is not canonical. It does not check
// the owners' names.
func (a Assignment) checkCanonical() error {
	if len(a) == 0 {
		return leasehold.Errorf(opAssignment, leasehold.ErrInvalid, "", "the assignment is empty: want at least one slot, from 0 on")
	}
	if a[0].Start != 0 {
		return badSlot(0, "the first slot starts at %v, want 0", a[0].Start)
	}
	for i := 1; i < len(a); i++ {
		before, slot := &a[i-1], &a[i]
		if slot.Start <= before.Start {
			return badSlot(i, "start %v is not after slot %d, which starts at %v", slot.Start, i-1, before.Start)
		}
		if slot.Owner == before.Owner {
			return badSlot(i, "owner %q also has slot %d: adjacent slots of one owner must be merged", slot.Owner, i-1)
		}
	}
	return nil
}

func badSlot(i int, format string, args ...any) error {
	return leasehold.Errorf(opAssignment, leasehold.ErrInvalid, fmt.Sprintf("slot %d", i), format, args...)
}
