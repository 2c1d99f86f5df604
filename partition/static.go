package partition

import (
	"math/bits"

	"github.com/leasehold-dev/leasehold"
)

// Static is a fixed assignment. The slots of owners that
// are not members have no owner until those owners join.
type Static struct {
	// Slots is the assignment while all of its owners are members.
	Slots Assignment
}

// NewStatic returns the policy with these slots, which must be sorted by
// start, begin at 0, and have valid owner names or "" for no owner. Adjacent slots
// of one owner are merged. It keeps no reference to slots.
func NewStatic(slots []Slot) (Static, error) {
	merged := make(Assignment, 0, len(slots))
	for i, s := range slots {
		if i > 0 && s.Start <= slots[i-1].Start {
			return Static{}, badStatic(badSlot(i, "start %v is not after slot %d, which starts at %v", s.Start, i-1, slots[i-1].Start))
		}
		if s.Owner != "" {
			if err := s.Owner.Validate(); err != nil {
				return Static{}, badStatic(badSlot(i, "%w", err))
			}
		}
		merged = merged.Append(s.Start, s.Owner)
	}
	if err := merged.checkCanonical(); err != nil {
		return Static{}, badStatic(err)
	}
	return Static{Slots: merged}, nil
}

func badStatic(err error) error {
	return &leasehold.Error{Op: "new static policy", Kind: leasehold.ErrInvalid, Err: err}
}

// Name returns "static".
func (Static) Name() string { return "static" }

// Assign returns the fixed slots, without those of owners that are not
// members.
func (s Static) Assign(in Input) (Assignment, error) {
	if err := ValidateInput(in); err != nil {
		return nil, err
	}
	if err := s.Slots.checkCanonical(); err != nil {
		return nil, &leasehold.Error{Op: "assign", Kind: leasehold.ErrInvalid, Subject: s.Name(), Err: err}
	}
	known := memberSet(in.Members)
	a := make(Assignment, 0, len(s.Slots))
	for _, slot := range s.Slots {
		if _, ok := known[slot.Owner]; !ok {
			slot.Owner = ""
		}
		a = a.Append(slot.Start, slot.Owner)
	}
	if limit := in.Limits.maxRanges(); len(a) > limit {
		return nil, leasehold.Errorf("assign", leasehold.ErrLimit, s.Name(), "%d slots, and the limit is %d", len(a), limit)
	}
	return a, nil
}

// Partial reports true: the slots of owners that are not members have no owner.
func (Static) Partial() bool { return true }

// Even assigns an equal slice of the key space to each member, in the order of
// their names, independent of weights: the fixed hashing over a set of owners
// that PRS 4.1 used in tests. An owner that joins or leaves moves most of
// the keys, so it is for pools that do not change, and for tests, whose readers can
// predict the owner of a key.
type Even struct{}

// Name returns "even".
func (Even) Name() string { return "even" }

// Assign assigns the keys from i*2^64/n on, rounded down, to member i of n.
func (e Even) Assign(in Input) (Assignment, error) {
	if err := ValidateInput(in); err != nil {
		return nil, err
	}
	n := len(in.Members)
	if n == 0 {
		return Assignment{{}}, nil
	}
	if n > in.Limits.maxRanges() {
		return nil, tooFewRanges(e.Name(), in, n)
	}
	a := make(Assignment, 0, n)
	for i, m := range in.Members {
		start, _ := bits.Div64(uint64(i), 0, uint64(n))
		a = a.Append(leasehold.Key(start), m.Owner)
	}
	return a, nil
}
