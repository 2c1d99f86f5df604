package partition

import (
	"fmt"

	"github.com/leasehold-dev/leasehold"
)

// Partial is implemented by policies that may leave keys to nobody although
// there are members. Of all others that is taken for a mistake.
type Partial interface {
	Partial() bool
}

// Apply asks a policy and checks its answer, whoever wrote it. It fails if the
// policy fails or panics, if [Validate] refuses the assignment, or if that gives
// keys to nobody while there are members, unless the policy is [Partial].
func Apply(p Policy, in Input) (a Assignment, err error) {
	defer func() {
		if why := recover(); why != nil {
			a, err = nil, leasehold.Errorf(opApply, leasehold.ErrInternal, nameOf(p), "the policy panicked: %v", why)
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
		return nil, leasehold.Errorf(opApply, leasehold.ErrInvalid, p.Name(), "the assignment is incomplete: it gives %v to nobody, and there are %d members", r, len(in.Members))
	}
	return a, nil
}

const opApply = "apply policy"

// nameOf is the policy's name, or its type if it cannot even say that.
func nameOf(p Policy) (name string) {
	defer func() {
		if recover() != nil {
			name = fmt.Sprintf("%T", p)
		}
	}()
	return p.Name()
}

const opAssignment = "validate assignment"

// Validate reports what is wrong with a as an answer to in: that it is not
// canonical, names an owner that is not a member, or has more slots than the
// limits allow. It does not ask that every key has an owner.
//
// Every assignment passes through Validate before use, whoever made it, since
// a policy may come from outside of this package. The members of in must be
// such as [ValidateInput] accepts.
func Validate(in Input, a Assignment) error {
	if limit := in.Limits.maxRanges(); len(a) > limit {
		return leasehold.Errorf(opAssignment, leasehold.ErrLimit, "", "%d slots, and the limit is %d", len(a), limit)
	}
	if err := a.checkCanonical(); err != nil {
		return err
	}
	slots := make(map[leasehold.OwnerID]*int, len(in.Members)+1) // pointers: one search for each slot
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
			return leasehold.Errorf(opAssignment, leasehold.ErrLimit, string(owner), "it has more than %d slots, and that is the limit", in.Limits.MaxPerOwner)
		}
	}
	return nil
}

// memberSet holds who may have keys: the members, and nobody.
func memberSet(members []Member) map[leasehold.OwnerID]struct{} {
	set := make(map[leasehold.OwnerID]struct{}, len(members)+1)
	set[""] = struct{}{}
	for _, m := range members {
		set[m.Owner] = struct{}{}
	}
	return set
}

// checkCanonical reports what keeps a from being canonical. It does not look
// at the owners' names.
func (a Assignment) checkCanonical() error {
	if len(a) == 0 {
		return leasehold.Errorf(opAssignment, leasehold.ErrInvalid, "", "it is empty: the least is one slot from 0 on")
	}
	if a[0].Start != 0 {
		return badSlot(0, "it starts at %v, and the first slot starts at 0", a[0].Start)
	}
	for i := 1; i < len(a); i++ {
		before, slot := &a[i-1], &a[i]
		if slot.Start <= before.Start {
			return badSlot(i, "it starts at %v, not after slot %d, which starts at %v", slot.Start, i-1, before.Start)
		}
		if slot.Owner == before.Owner {
			return badSlot(i, "owner %q has slot %d too: neighbours must be merged", slot.Owner, i-1)
		}
	}
	return nil
}

func badSlot(i int, format string, args ...any) error {
	return leasehold.Errorf(opAssignment, leasehold.ErrInvalid, fmt.Sprintf("slot %d", i), format, args...)
}
