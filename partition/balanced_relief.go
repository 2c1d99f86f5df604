package partition

import (
	"cmp"
	"slices"
)

// This file handles members with too much load. Such a donor gives pieces of
// its ranges to members with room, the best pieces first.
//
// The level is the load per weight that all members would have if load were
// divisible. A key is not divisible: a member whose costliest key is above its
// level keeps it, and is excluded from the level of the others.

// relief is the state of balancing.
type relief struct {
	*decision
	*plan
	level  float64
	base   []float64 // target load of each member: weight x level, or its one key
	giant  []bool    // members whose costliest key is more than weight x level
	donor  []bool
	rooms  *ranking // members that can take load, by their room
	normal int      // the initial number of ranges
}

// Fractions of the tolerance, and of a member's fair load.
const (
	aim       = 1.0 / 3  // of the tolerance above the level: a donor stops here, and no target is filled further
	near      = 2.0 / 3  // of the tolerance above the level: members beyond it are donors, too, if there are donors
	low       = 2.0 / 3  // of the tolerance below the level: no donor falls further
	enough    = 0.01     // of the fair load: a smaller excess is not worth a move
	hotShare  = 0.5      // of the fair load: a donor's key with a higher cost gets a separate range
	maxWalked = 32 << 20 // atoms read in a round, after which a decision stays coarse or incomplete
)

func newRelief(d *decision, p *plan) *relief {
	n := len(p.members)
	r := &relief{decision: d, plan: p, base: make([]float64, n), giant: make([]bool, n), donor: make([]bool, n)}
	r.normal = total(piecesOf(d.Ranges, d.in.Members))
	r.findLevel()
	r.findDonors()
	r.rooms = newRanking(r.room, r.where(func(m int32) bool { return !r.donor[m] && !r.giant[m] })...)
	return r
}

// findDonors finds the donors: none while all members are within the
// tolerance; if one is beyond, all members near it. Otherwise measurement noise would
// make those donors one by one.
func (r *relief) findDonors() {
	beyond := func(part float64) []int32 {
		return r.where(func(m int32) bool {
			return r.load[m]-r.base[m] > part*r.Tolerance*r.fair(m) || r.giant[m] && !r.alone(m)
		})
	}
	if len(beyond(1)) == 0 {
		return
	}
	for _, m := range beyond(near) {
		r.donor[m] = true
	}
}

// findLevel computes the level, and the target load of each member.
func (r *relief) findLevel() {
	top := make([]float64, len(r.members))
	for i := range r.parts {
		if x := &r.parts[i]; !x.merged {
			top[x.owner] = max(top[x.owner], x.top)
		}
	}
	order := r.where(func(int32) bool { return true })
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(top[b]/r.weight[b], top[a]/r.weight[a]), cmp.Compare(a, b))
	})
	load, weight := 1.0, r.weights
	for _, m := range order[:len(order)-1] {
		if top[m]*weight <= load*r.weight[m] {
			break
		}
		r.giant[m] = true
		load -= top[m]
		weight -= r.weight[m]
	}
	r.level = max(0, load) / max(weight, minWeight) // with rounding errors, both may be 0 or less
	for m := range r.members {
		r.base[m] = r.level * r.weight[m]
		if r.giant[m] {
			r.base[m] = top[m]
		}
	}
}

// fair returns a member's fair load.
func (r *relief) fair(m int32) float64 { return r.level * r.weight[m] }

// excess returns the load that a donor should give away.
func (r *relief) excess(m int32) float64 {
	return r.load[m] - r.base[m] - aim*r.Tolerance*r.fair(m)
}

// room returns the load that a member that is not a donor can take.
func (r *relief) room(m int32) float64 {
	return r.fair(m)*(1+aim*r.Tolerance) - r.load[m]
}

// alone reports whether the costliest key of giant m has a separate range.
func (r *relief) alone(m int32) bool {
	return slices.ContainsFunc(r.held[m], func(i int32) bool {
		x := &r.parts[i]
		return r.has(m, i) && x.start == x.last && x.top == r.base[m]
	})
}

// run relieves all donors, in decreasing order of their excess per weight.
func (r *relief) run() {
	donors := r.where(func(m int32) bool { return r.donor[m] })
	over := func(m int32) float64 { return (r.load[m] - r.base[m]) / r.weight[m] }
	slices.SortStableFunc(donors, func(a, b int32) int { return cmp.Compare(over(b), over(a)) })
	for _, m := range donors {
		r.isolate(m)
		r.relieve(m)
	}
}

// isolate gives away the keys next to the hot keys of donor m. This costs little, because the donor
// must give pieces away anyway.
func (r *relief) isolate(m int32) {
	want := max(r.excess(m), aim*r.Tolerance*r.fair(m))
	most := keysOf(min(1, r.weight[m]/r.weights/float64(r.Ranges)))
	for _, i := range slices.Clone(r.held[m]) {
		x := &r.parts[i]
		if !r.has(m, i) || x.top < hotShare*r.fair(m) {
			continue
		}
		key, start := x.topAt, x.start
		if key < x.last {
			r.trim(m, i, span{key + 1, x.last}, want/2, most, fromStart)
		}
		if start < key { // part i still begins at start and contains the key
			r.trim(m, i, span{start, key - 1}, want/2, most, fromEnd)
		}
	}
}

// trim gives away the keys at one end of s, a span within part i of donor m. It
// gives away all of s if the rest would be small.
func (r *relief) trim(m, i int32, s span, want float64, most uint64, from end) {
	to, ok := r.rooms.top()
	if !ok {
		return
	}
	atoms, most := r.atoms(s), min(most, r.budget)
	if measureAtoms(atoms).cost > min(want+aim*r.Tolerance*r.fair(m), r.room(to)) || s.keys() > most {
		if s, ok = edge(atoms, rounding*min(want, r.room(to)), most, from); !ok {
			return
		}
	}
	c := candidate{part: i, span: s, cost: measureAtoms(r.atoms(s)).cost}
	if r.fill(&c) {
		r.move(&c)
	}
}

// relieve gives pieces of donor m to other members until it has no excess or
// no admissible piece, or the budget is spent.
func (r *relief) relieve(m int32) {
	found := make(map[int32]candidate)
	order := newRanking(func(i int32) float64 { return found[i].score })
	consider := func(i int32) {
		if c, ok := r.best(m, i); ok {
			found[i] = c
			order.push(i)
		}
	}
	for _, i := range slices.Clone(r.held[m]) {
		if _, duplicate := found[i]; !duplicate && r.has(m, i) {
			consider(i)
		}
	}
	for r.excess(m) > enough*r.fair(m) && r.walked < maxWalked {
		i, ok := order.top()
		if !ok {
			return
		}
		order.drop()
		c := found[i]
		if !r.admissible(m, &c) {
			consider(i) // its score has changed
			continue
		}
		for _, rest := range r.move(&c) {
			consider(rest)
		}
	}
}

// move executes the move c.
func (r *relief) move(c *candidate) (rest []int32) {
	_, rest = r.give(c.part, c.span, c.to)
	r.budget -= c.span.keys()
	return rest
}
