package partition

import "github.com/leasehold-dev/leasehold"

// nobody is the owner of a part that no member has.
const nobody = -1

// none stands for no part.
const none = -1

// A part is a slot of an assignment that is being worked on.
type part struct {
	span
	measure
	owner      int32 // index of a member, or nobody
	prev, next int32 // its neighbours, or none
	gone       bool  // it was merged into a neighbour
}

// A plan is an assignment that is being worked on, with what each part costs.
// Between its methods, neighbours have different owners.
type plan struct {
	members []Member
	costs   *costs
	parts   []part    // in no order; the first is the one that starts at 0
	held    [][]int32 // for each member, the parts that it has or has had
	load    []float64 // what each member's parts cost
	slots   []int     // the number of each member's parts
	weight  []float64 // each member's weight, made no less than minWeight
	live    int       // the number of parts that are not gone
	weights float64   // the sum of all weights
	walked  int       // how many atoms were looked at: what the work has cost
	scratch []atom
}

// minWeight is what the least of weights counts for. Balance among members that
// differ a billionfold is no aim, and every member must find keys.
const minWeight = 1e-6

// newPlan returns the plan of a, whose owners are those members or strangers.
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
			owner = nobody
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
	return p.mergeNobody()
}

// mergeNobody joins neighbours that strangers had.
func (p *plan) mergeNobody() *plan {
	for i := range p.parts {
		if x := &p.parts[i]; !x.gone && x.owner == nobody {
			for x.next != none && p.parts[x.next].owner == nobody {
				p.absorb(int32(i), x.next)
			}
		}
	}
	return p
}

// assignment is what the plan has come to.
func (p *plan) assignment() Assignment {
	a := make(Assignment, 0, p.live)
	for i := int32(0); i != none; i = p.parts[i].next {
		owner := leasehold.OwnerID("")
		if o := p.parts[i].owner; o != nobody {
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

// has reports whether part i is owner's. Lists in held name others too.
func (p *plan) has(owner, i int32) bool { return !p.parts[i].gone && p.parts[i].owner == owner }

// atoms returns the atoms of s. They are good until the next call.
func (p *plan) atoms(s span) []atom {
	w := p.costs.seek(s.start)
	p.scratch = w.atoms(p.scratch[:0], s)
	p.walked += len(p.scratch)
	return p.scratch
}

// give takes s, which lies within part i, from its owner and gives it to a
// member. It returns the parts that s and what is left of i are in now: first
// the one with s, then none to two others.
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

// cut divides part i before key at and returns the number of the second half.
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
	if o := x.owner; o != nobody {
		p.load[o] += x.cost + second.cost - before
		p.slots[o]++
		p.held[o] = append(p.held[o], n)
	}
	return n
}

// absorb makes part i of its neighbour behind it too, which has the same owner.
func (p *plan) absorb(i, behind int32) {
	x, y := &p.parts[i], &p.parts[behind]
	if x.owner != nobody {
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
	y.gone = true
	p.live--
}

// lose takes part i from its owner.
func (p *plan) lose(i int32) {
	if o := p.parts[i].owner; o != nobody {
		p.load[o] -= p.parts[i].cost
		if p.slots[o]--; p.slots[o] == 0 {
			p.load[o] = 0 // sums of floats leave something behind
		}
	}
}

// gain gives part i, which nobody has, to owner.
func (p *plan) gain(i, owner int32) {
	p.parts[i].owner = owner
	if owner != nobody {
		p.load[owner] += p.parts[i].cost
		p.slots[owner]++
		p.held[owner] = append(p.held[owner], i)
	}
}

// growth returns by how much the number of all parts grows, and by how much
// that of the owners to and from, if s, which lies within part i, is given to
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
