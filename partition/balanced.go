package partition

import (
	"cmp"
	"math"
	"slices"

	"github.com/leasehold-dev/leasehold"
)

// Defaults and bounds of [Balanced].
const (
	DefaultRanges    = 16
	DefaultTolerance = 0.15
	minTolerance     = 0.03
)

// Balanced assigns to every member a share of the load in proportion to its
// weight, and moves few keys.
//
//   - Initially every member has Ranges ranges per unit of weight, cut so
//     that the shares of the keys are exact, in a mixed order.
//   - The keys of a leaving owner move to the members with the least load. A member that
//     joins takes its share from the members with the most load, in whole ranges where
//     they fit. No other key moves.
//   - If the loads of at least 90 % of the keys are known, a member whose load is
//     more than Tolerance above the mean gives parts of its ranges to members
//     below, until it is within a third of Tolerance. The parts with the most
//     relief per moved key and added range move first:
//     hot keys, then dense cells, whole ranges, pieces from an edge. At most
//     Input.Budget of the keys move.
//   - A key with more than a fair share of the load gets a separate range,
//     at an owner with little other load. The other members are compared with the mean
//     of the rest.
//   - When there are three times as many ranges as initially, cold
//     slivers move to the owner of an adjacent range, until there are twice as many.
//
// It does not oscillate. A member gives keys away only above the upper bound, stops
// well below it, and fills no other beyond the lower one, so that differences of a few per
// cent between two measurements move no keys.
//
// Without loads, all keys cost the same, and only joins and leaves
// move keys. At low rates, measurements are mostly
// noise: callers may then pass no loads.
//
// Assign takes linear time in the ranges and the cells, and for each piece that
// moves, in the cells of its range: on a loaded computer, 3 to 5 ms for 250 owners
// with 64,000 cells, and 0.3 s for 10,000 owners with 160,000 ranges and 2.5
// million cells; twice that if many keys move.
type Balanced struct {
	// Ranges is the initial number of ranges of a member of weight 1, up
	// to MaxVirtualNodes; 0 means DefaultRanges. More ranges allow finer steps at
	// joins and leaves, and make the table longer, which every lookup stores.
	// Moves may make the table up to four times as
	// long, and longer only if hot keys need a range of their own.
	Ranges int
	// Tolerance is the maximum load of a member above the mean, as a fraction of
	// the mean, before keys move: 0.03 to 1; 0 means DefaultTolerance.
	// A lower value makes the loads more even; a higher one moves fewer keys. It should be at
	// least five times the error of the measured loads.
	Tolerance float64
}

// Name returns "balanced".
func (Balanced) Name() string { return "balanced" }

func (b Balanced) validate() error {
	if b.Ranges < 0 || b.Ranges > MaxVirtualNodes {
		return leasehold.Errorf("assign", leasehold.ErrInvalid, b.Name(),
			"%d ranges per owner, want 1 to %d, or 0 for %d", b.Ranges, MaxVirtualNodes, DefaultRanges)
	}
	if b.Tolerance != 0 && !(b.Tolerance >= minTolerance && b.Tolerance <= 1) { // also rejects NaN
		return leasehold.Errorf("assign", leasehold.ErrInvalid, b.Name(),
			"tolerance is %v, want %v to 1, or 0 for %v", b.Tolerance, minTolerance, DefaultTolerance)
	}
	return nil
}

func (b Balanced) orDefaults() Balanced {
	return Balanced{cmp.Or(b.Ranges, DefaultRanges), cmp.Or(b.Tolerance, DefaultTolerance)}
}

// maxRounds bounds the iterations of a decision. One round is enough
// unless its cuts allow better ones.
const maxRounds = 4

// Assign assigns every key to a member; without members, keys have no owner.
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
	budget uint64 // keys that may still move for balancing
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

// first returns the initial assignment. The members' ranges are in the order
// of their points in consistent hashing, which is a pseudo-random order.
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

// round returns an improved assignment. The steps are in the order of urgency.
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
// before Balanced or Adaptive move keys for balancing.
const EnoughKnown = 0.9

// coverage returns the share of the members' keys whose loads are known.
func (p *plan) coverage() float64 {
	known, all := 0.0, 0.0
	for i := range p.parts {
		if x := &p.parts[i]; x.owner != noOwner {
			known += x.known
			all += x.share()
		}
	}
	if all == 0 {
		return 0
	}
	return known / all
}
