package partition

import (
	"cmp"
	"math"
	"slices"

	"github.com/leasehold-dev/leasehold"
)

// Defaults of [Balanced], and bounds.
const (
	DefaultRanges    = 16
	DefaultTolerance = 0.15
	minTolerance     = 0.03
)

// Balanced gives every member a share of the load that is in proportion to its
// weight, and moves few keys for it.
//
//   - To begin with, every member has Ranges ranges per unit of weight, cut so
//     that their shares of the keys are exact, in an order that mixes them.
//   - What a leaving owner had goes to those who have the least. A member that
//     joins takes its share from those who have the most, in whole ranges where
//     they fit. No other key moves.
//   - While the loads of nine keys in ten are known, a member whose load is
//     more than Tolerance above the mean gives parts of its ranges to members
//     below, until it is within a third of Tolerance. Those parts come first
//     that relieve it most for the keys that move and the ranges that it takes:
//     hot keys, then dense cells, whole ranges, pieces from an edge. The keys
//     so moved are never more than Input.Budget.
//   - A key that is more than a fair share by itself ends up alone in its
//     range, with an owner that has little else, and the mean that the others
//     are compared with is that of the rest.
//   - When there are three times as many ranges as in the beginning, cold
//     slivers go to the owner of a neighbour, until there are twice as many.
//
// It does not oscillate. A member acts only above the upper bound, stops
// well below it, and fills no other beyond the lower one, so that loads which
// differ by a few per cent from one measurement to the next move nothing.
//
// Without loads, and where no work is done, keys count alike, and only members
// that come and go move any. Where little work is done, measurements are mostly
// chance: callers may then pass no loads.
//
// Assign takes linear time in the ranges and the cells, and for each piece that
// moves, in the cells of its range: on a busy computer, 3 to 5 ms for 250 owners
// with 64,000 cells, and 0.3 s for 10,000 owners with 160,000 ranges and 2.5
// million cells; twice that if much moves.
type Balanced struct {
	// Ranges is the number of ranges that a member of weight 1 begins with, up
	// to MaxVirtualNodes; 0 means DefaultRanges. More make the steps finer in
	// which members that come and go take and leave keys, and the table longer,
	// of which every lookup holds all. Moves may make it up to four times as
	// long, and longer only if hot keys need a range of their own.
	Ranges int
	// Tolerance is how far above the mean a member's load may be, as a part of
	// the mean, before keys move for it: 0.03 to 1; 0 means DefaultTolerance.
	// Less makes the loads more even; more is quieter. It should be five times
	// the error of the measured loads, or more.
	Tolerance float64
}

// Name returns "balanced".
func (Balanced) Name() string { return "balanced" }

func (b Balanced) validate() error {
	if b.Ranges < 0 || b.Ranges > MaxVirtualNodes {
		return leasehold.Errorf("assign", leasehold.ErrInvalid, b.Name(),
			"%d ranges per owner, want 1 to %d, or 0 for %d", b.Ranges, MaxVirtualNodes, DefaultRanges)
	}
	if b.Tolerance != 0 && !(b.Tolerance >= minTolerance && b.Tolerance <= 1) { // so written, NaN fails
		return leasehold.Errorf("assign", leasehold.ErrInvalid, b.Name(),
			"tolerance is %v, want %v to 1, or 0 for %v", b.Tolerance, minTolerance, DefaultTolerance)
	}
	return nil
}

func (b Balanced) orDefaults() Balanced {
	return Balanced{cmp.Or(b.Ranges, DefaultRanges), cmp.Or(b.Tolerance, DefaultTolerance)}
}

// maxRounds bounds how often a decision is looked at again. One round is enough
// but where the cuts of the first have made better ones possible.
const maxRounds = 4

// Assign gives every key to a member, or to nobody if there is none.
func (b Balanced) Assign(in Input) (Assignment, error) {
	if err := ValidateInput(in); err != nil {
		return nil, err
	}
	if err := b.validate(); err != nil {
		return nil, err
	}
	n := len(in.Members)
	if n == 0 {
		return Assignment{{}}, nil
	}
	if n > in.Limits.maxRanges() {
		return nil, tooFewRanges(b.Name(), in, n)
	}
	d := decision{Balanced: b.orDefaults(), in: in, costs: newCosts(in.Loads), budget: keysOf(in.Budget)}
	a := in.Current
	if !heldByAny(in.Members, a) {
		a = d.first()
	}
	for range maxRounds {
		before := a
		a = d.round(before)
		if slices.Equal(a, before) {
			break
		}
	}
	return a, nil
}

// A decision is one call of Assign.
type decision struct {
	Balanced
	in     Input
	costs  *costs
	budget uint64 // keys that may still move for the sake of balance
}

// keysOf returns a share of all keys as a number, rounded down.
func keysOf(share float64) uint64 {
	if share >= 1 {
		return math.MaxUint64
	}
	return uint64(math.Ldexp(share, 64))
}

// heldByAny reports whether a member has keys.
func heldByAny(members []Member, a Assignment) bool {
	set := memberSet(members)
	return slices.ContainsFunc(a, func(s Slot) bool {
		_, ok := set[s.Owner]
		return ok && s.Owner != ""
	})
}

// first returns the assignment to begin with. Members take turns in the order
// of the points that they would have on a circle, which is as good as chance
// and needs none.
func (d *decision) first() Assignment {
	members := d.in.Members
	counts, weights := piecesOf(d.Ranges, members), 0.0
	limitCounts(counts, d.in.Limits.MaxPerOwner-1, d.in.Limits.maxRanges())
	for _, m := range members {
		weights += max(m.Weight, minWeight)
	}
	points := sortPoints(appendPoints(members, counts))
	a := make(Assignment, 0, len(points))
	at := 0.0 // the share of keys before the next piece
	for _, p := range points {
		start := leasehold.Key(math.Ldexp(min(at, 1-0x1p-53), 64))
		if n := len(a); n == 0 || a[n-1].Start < start {
			a = a.Append(start, members[p.member].Owner)
		}
		at += max(members[p.member].Weight, minWeight) / weights / float64(counts[p.member])
	}
	return a
}

// round does what a asks for, in the order of need.
func (d *decision) round(a Assignment) Assignment {
	p := newPlan(d.in.Members, a, d.costs)
	balance := p.coverage() >= EnoughKnown
	d.replaceLost(p)
	d.welcome(p)
	if balance {
		r := newRelief(d, p)
		r.run()
		r.mergeSlivers()
	}
	d.keepToLimits(p)
	return p.assignment()
}

// EnoughKnown is the share of the members' keys whose loads must be known
// before Balanced or Adaptive move anything for balance.
const EnoughKnown = 0.9

// coverage is the share of the members' keys whose loads are known.
func (p *plan) coverage() float64 {
	known, all := 0.0, 0.0
	for i := range p.parts {
		if x := &p.parts[i]; x.owner != nobody {
			known += x.known
			all += x.share()
		}
	}
	if all == 0 {
		return 0
	}
	return known / all
}
