package partition

import "github.com/leasehold-dev/leasehold"

// noOwner is the owner of a part without a member.
const noOwner = -1

// none is the index of no part.
const none = -1

// A part is a slot of a plan.
type part struct {
	span
	measure
	owner      int32 // index of a member, or noOwner
	prev, next int32 // adjacent parts, or none
	merged     bool  // into an adjacent part
}

// A plan is a mutable assignment with the cost of each part.
// Between calls of its methods, adjacent parts have different owners.
type plan struct {
	members []Member
	costs   *costs
	parts   []part    // unordered; the first one starts at 0
	held    [][]int32 // for each member, its current and former parts
	load    []float64 // for each member, the cost of its parts
	slots   []int     // for each member, the number of its parts
	weight  []float64 // for each member, its weight, at least minWeight
	live    int       // the number of parts that are not merged
	weights float64   // the sum of all weights
	walked  int       // the number of atoms read, a measure of the work
	scratch []atom
}

// minWeight is the minimum effective weight. Balance between weights that
// differ by a factor of a billion is not a goal, and every member must get keys.
const minWeight = 1e-6

// newPlan returns the plan of a. Owners that are not members become noOwner.
func newPlan(members []Member, a Assignment, c *costs) *plan {
	n := len(members)
	p := &plan{
		members: members, costs: c, parts: make([]part, 0, len(a)+len(a)/8), live: len(a),
		held: make([][]int32, n), load: make([]float64, n), slots: make([]int, n), weight: make([]float64, n),
	}
	index := make(map[leasehold.OwnerID]int32, n)
	for i, m := range members {
		index[m.Owner] = int32(i)
		p.weight[i] = max(m.Weight, minWeight)
		p.weights += p.weight[i]
	}
	w := c.seek(0)
	for i := range a {
		owner, ok := index[a[i].Owner]
		if !ok {
			owner = noOwner
		}
		x := part{span: spanOf(a.rangeAt(i)), owner: owner, prev: int32(i) - 1, next: int32(i) + 1}
		if i == len(a)-1 {
			x.next = none
		}
		p.scratch = w.atoms(p.scratch[:0], x.span)
		x.measure = measureAtoms(p.scratch)
		p.parts = append(p.parts, x)
		p.gain(int32(i), owner)
	}
	return p.mergeUnowned()
}

// mergeUnowned merges adjacent parts without an owner.
func (p *plan) mergeUnowned() *plan {
	for i := range p.parts {
		if x := &p.parts[i]; !x.merged && x.owner == noOwner {
			for x.next != none && p.parts[x.next].owner == noOwner {
				p.absorb(int32(i), x.next)
			}
		}
	}
	return p
}

// assignment returns the plan as an assignment.
func (p *plan) assignment() Assignment {
	a := make(Assignment, 0, p.live)
	for i := int32(0); i != none; i = p.parts[i].next {
		owner := leasehold.OwnerID("")
		if o := p.parts[i].owner; o != noOwner {
			owner = p.members[o].Owner
		}
		a = a.Append(p.parts[i].start, owner)
	}
	return a
}

// where returns the members for which keep is true.
func (p *plan) where(keep func(m int32) bool) (members []int32) {
	for m := range int32(len(p.members)) {
		if keep(m) {
			members = append(members, m)
		}
	}
	return members
}

// has reports whether owner has part i; held also contains former parts.
func (p *plan) has(owner, i int32) bool { return !p.parts[i].merged && p.parts[i].owner == owner }

// atoms returns the atoms of s. They are valid until the next call.
func (p *plan) atoms(s span) []atom {
	w := p.costs.seek(s.start)
	p.scratch = w.atoms(p.scratch[:0], s)
	p.walked += len(p.scratch)
	return p.scratch
}

// give moves s, which lies within part i, from its owner to a
// member. It returns the part that contains s, and none to two parts with the rest of i.
func (p *plan) give(i int32, s span, to int32) (given int32, rest []int32) {
	if x := p.parts[i].span; s.start > x.start {
		rest = append(rest, i)
		i = p.cut(i, s.start)
	}
	if x := p.parts[i].span; s.last < x.last {
		rest = append(rest, p.cut(i, s.last+1))
	}
	p.lose(i)
	p.gain(i, to)
	x := &p.parts[i]
	if x.next != none && p.parts[x.next].owner == to {
		p.absorb(i, x.next)
	}
	if x.prev != none && p.parts[x.prev].owner == to {
		into := x.prev
		p.absorb(into, i)
		i = into
	}
	return i, rest
}

// cut splits part i before key at and returns the index of the second half.
func (p *plan) cut(i int32, at leasehold.Key) int32 {
	n := int32(len(p.parts))
	second := part{span: span{at, p.parts[i].last}, prev: i, next: p.parts[i].next, owner: p.parts[i].owner}
	second.measure = measureAtoms(p.atoms(second.span))
	p.parts = append(p.parts, second)
	p.live++

	x := &p.parts[i]
	before := x.cost
	x.last, x.next = at-1, n
	x.measure = measureAtoms(p.atoms(x.span))
	if second.next != none {
		p.parts[second.next].prev = n
	}
	if o := x.owner; o != noOwner {
		p.load[o] += x.cost + second.cost - before
		p.slots[o]++
		p.held[o] = append(p.held[o], n)
	}
	return n
}

// absorb merges the part after part i, which has the same owner, into part i.
func (p *plan) absorb(i, behind int32) {
	x, y := &p.parts[i], &p.parts[behind]
	if x.owner != noOwner {
		p.slots[x.owner]--
	}
	x.last, x.next = y.last, y.next
	x.cost += y.cost
	x.known += y.known
	if y.top > x.top {
		x.top, x.topAt = y.top, y.topAt
	}
	if x.next != none {
		p.parts[x.next].prev = i
	}
	y.merged = true
	p.live--
}

// lose removes part i from its owner.
func (p *plan) lose(i int32) {
	if o := p.parts[i].owner; o != noOwner {
		p.load[o] -= p.parts[i].cost
		if p.slots[o]--; p.slots[o] == 0 {
			p.load[o] = 0 // removes rounding errors
		}
	}
}

// gain assigns part i, which has no owner, to owner.
func (p *plan) gain(i, owner int32) {
	p.parts[i].owner = owner
	if owner != noOwner {
		p.load[owner] += p.parts[i].cost
		p.slots[owner]++
		p.held[owner] = append(p.held[owner], i)
	}
}

// growth returns the change of the number of all parts, and of the parts
// of the owners to and from, if s, which lies within part i, moves to
// to.
func (p *plan) growth(i int32, s span, to int32) (all, ofTo, ofFrom int) {
	x := &p.parts[i]
	ofTo, ofFrom = 1, -1
	side := func(cut bool, neighbour int32) {
		switch {
		case cut:
			all++
			ofFrom++
		case neighbour != none && p.parts[neighbour].owner == to:
			all--
			ofTo--
		}
	}
	side(s.start > x.start, x.prev)
	side(s.last < x.last, x.next)
	return all, ofTo, ofFrom
}
