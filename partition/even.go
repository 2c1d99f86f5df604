package partition

import (
	"math/bits"

	"github.com/leasehold-dev/leasehold"
)

// Even gives each member an equal slice of the key space, in the order of
// their names, whatever their weights: the fixed hashing over a set of owners
// that PRS 4.1 kept for its tests. An owner that joins or leaves moves most of
// the keys, so it suits pools that do not change, and tests, whose readers can
// tell at a glance who has which key.
type Even struct{}

// Name returns "even".
func (Even) Name() string { return "even" }

// Assign gives member i of n the keys from i*2^64/n on, rounded down.
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
