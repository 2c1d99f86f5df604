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
