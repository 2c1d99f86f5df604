package partition

import "github.com/leasehold-dev/leasehold"

// Static is an assignment that was fixed beforehand. The slots of owners that
// are not members now are left to nobody until those owners come back.
type Static struct {
	// Slots is the assignment while all of its owners are members.
	Slots Assignment
}

// NewStatic returns the policy that wants slots, which must be sorted by
// start, begin at 0, and have valid owner names or "" for nobody. Neighbours
// of one owner are merged. It keeps no reference to slots.
func NewStatic(slots []Slot) (Static, error) {
	merged := make(Assignment, 0, len(slots))
	for i, s := range slots {
		if i > 0 && s.Start <= slots[i-1].Start {
			return Static{}, badStatic(badSlot(i, "it starts at %v, not after slot %d, which starts at %v", s.Start, i-1, slots[i-1].Start))
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

// Partial reports that the slots of owners that are away are nobody's.
func (Static) Partial() bool { return true }
