package partition

import (
	"cmp"
	"slices"
)

// sliver is the maximum cost of a range that mergeSlivers merges, as
// a fraction of the initial cost of a range.
const sliver = 0.25

// mergeSlivers shortens a table that moves have made more than three times as
// long as initially. Ranges with low costs move to the owner of an adjacent
// range, the smallest first, if that owner has room.
func (r *relief) mergeSlivers() {
	if r.live <= 3*r.normal {
		return
	}
	most := sliver * r.chunk(r.plan)
	for _, i := range r.inOrder(func(x *part) float64 { return x.share() }) {
		if r.live <= 2*r.normal {
			return
		}
		x := &r.parts[i]
		if x.merged || x.cost > most || r.slots[x.owner] < 2 || x.keys() > r.budget {
			continue
		}
		c := candidate{part: i, span: x.span, cost: x.cost}
		for _, n := range []int32{x.prev, x.next} {
			// A range with a single key stays.
			if n != none && r.parts[n].start != r.parts[n].last && r.takes(n, &c) {
				r.move(&c)
				break
			}
		}
	}
}

// inOrder returns the parts in increasing order of a value.
func (p *plan) inOrder(value func(*part) float64) []int32 {
	order := make([]int32, 0, p.live)
	for i := int32(0); i != none; i = p.parts[i].next {
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(i, j int32) int {
		return cmp.Compare(value(&p.parts[i]), value(&p.parts[j]))
	})
	return order
}

// keepToLimits merges ranges until the table is within the limits,
// the cheapest first, regardless of balance. Limits may have been
// lowered, or the number of members may have grown.
func (d *decision) keepToLimits(p *plan) {
	most := d.in.Limits.maxRanges()
	tooMany := func(o int32) bool {
		return p.slots[o] > 1 && (p.live > most || d.in.Limits.perOwner(p.slots[o]) < p.slots[o])
	}
	for over := len(p.where(tooMany)) > 0; over; {
		over = false
		for _, i := range p.inOrder(func(x *part) float64 { return x.cost }) {
			if x := &p.parts[i]; !x.merged && tooMany(x.owner) {
				p.give(i, x.span, p.lessLoaded(x.prev, x.next))
				over = true
			}
		}
	}
}

// lessLoaded returns the owner of two adjacent parts with less load per
// weight. One of the parts may be none.
func (p *plan) lessLoaded(i, j int32) int32 {
	switch {
	case i == none:
		return p.parts[j].owner
	case j == none:
		return p.parts[i].owner
	}
	a, b := p.parts[i].owner, p.parts[j].owner
	if p.load[b]/p.weight[b] < p.load[a]/p.weight[a] {
		return b
	}
	return a
}
