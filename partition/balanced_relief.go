package partition

import (
	"cmp"
	"slices"
)

// This file is about members that have too much. Such a donor gives pieces of
// its ranges to members that have room, the best pieces first.
//
// The level is the load, for a weight of 1, that all would have if load were
// water. A key cannot be divided: a member whose costliest key is above its
// level must bear that, and is left out when the level of the others is found.

// relief is the work of making loads even.
type relief struct {
	*decision
	*plan
	level  float64
	base   []float64 // what each member should have: weight x level, or its one key
	giant  []bool    // members whose costliest key is more than weight x level
	donor  []bool
	rooms  *ranking // members that can take load, by how much
	normal int      // the number of ranges to begin with
}

// Parts of the tolerance, and of a member's fair load.
const (
	aim       = 1.0 / 3  // a donor stops at this part of the tolerance above the level, and nobody is filled further
	near      = 2.0 / 3  // a member beyond this part of it is a donor too, if there are donors
	low       = 2.0 / 3  // no donor falls further below the level than this part of the tolerance
	enough    = 0.01     // an excess that is not worth a move, as a part of the fair load
	hotShare  = 0.5      // a donor's key that costs this part of the fair load is put into a range of its own
	maxWalked = 32 << 20 // atoms looked at in a round, after which a decision is left coarse or unfinished
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

// findDonors finds who gives load away: nobody while all are within the
// tolerance; but once anybody is beyond, all who come near it. Else those would
// follow one by one, as chance has it.
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

// findLevel finds the level, and what each member should have.
func (r *relief) findLevel() {
	top := make([]float64, len(r.members))
	for i := range r.parts {
		if x := &r.parts[i]; !x.gone {
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
	r.level = max(0, load) / max(weight, minWeight) // what is left of sums of floats may be nothing
	for m := range r.members {
		r.base[m] = r.level * r.weight[m]
		if r.giant[m] {
			r.base[m] = top[m]
		}
	}
}

// fair is what a member's weight entitles it to.
func (r *relief) fair(m int32) float64 { return r.level * r.weight[m] }

// excess is by how much a donor is above where it stops.
func (r *relief) excess(m int32) float64 {
	return r.load[m] - r.base[m] - aim*r.Tolerance*r.fair(m)
}

// room is how much a member that is no donor can take.
func (r *relief) room(m int32) float64 {
	return r.fair(m)*(1+aim*r.Tolerance) - r.load[m]
}

// alone reports whether the one great key of m is in a range of its own.
func (r *relief) alone(m int32) bool {
	return slices.ContainsFunc(r.held[m], func(i int32) bool {
		x := &r.parts[i]
		return r.has(m, i) && x.start == x.last && x.top == r.base[m]
	})
}

// run relieves all donors, those first that have the most for their weight.
func (r *relief) run() {
	donors := r.where(func(m int32) bool { return r.donor[m] })
	over := func(m int32) float64 { return (r.load[m] - r.base[m]) / r.weight[m] }
	slices.SortStableFunc(donors, func(a, b int32) int { return cmp.Compare(over(b), over(a)) })
	for _, m := range donors {
		r.isolate(m)
		r.relieve(m)
	}
}

// isolate gives away what lies beside the great keys of donor m, which is
// cheap to do among the pieces that it must give away anyway.
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
		if start < key { // part i still begins there and has the key
			r.trim(m, i, span{start, key - 1}, want/2, most, fromEnd)
		}
	}
}

// trim gives away the keys at one end of s, a span within part i of donor m. It
// takes all of s if little would be left.
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

// relieve gives pieces of what donor m has to others until it has no excess, or
// nothing that would help, or the budget is spent.
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
		if _, twice := found[i]; !twice && r.has(m, i) {
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
			consider(i) // what it was good for has changed
			continue
		}
		for _, rest := range r.move(&c) {
			consider(rest)
		}
	}
}

// move carries c out.
func (r *relief) move(c *candidate) (rest []int32) {
	_, rest = r.give(c.part, c.span, c.to)
	r.budget -= c.span.keys()
	return rest
}
