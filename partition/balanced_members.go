package partition

import (
	"cmp"
	"slices"

	"github.com/leasehold-dev/leasehold"
)

// This file handles joins and leaves. A member's fair load is its share
// of all weights: then all members have the same load per weight.

// chunk is the initial cost of a range, and so the granularity of joins and leaves.
func (d *decision) chunk(p *plan) float64 { return 1 / p.weights / float64(d.Ranges) }

// replaceLost assigns parts without an owner to the members with the least load per
// weight. A whole range moves where it fits, within half the tolerance above the fair load;
// a range larger than the spare load of every member is cut.
func (d *decision) replaceLost(p *plan) {
	var lost []int32
	for i := range p.parts {
		if x := &p.parts[i]; !x.merged && x.owner == noOwner {
			lost = append(lost, int32(i))
		}
	}
	if len(lost) == 0 {
		return
	}
	slices.SortStableFunc(lost, func(i, j int32) int { return cmp.Compare(p.parts[j].cost, p.parts[i].cost) })
	rooms := newRanking(p.spare, p.where(func(int32) bool { return true })...)
	for _, i := range lost {
		for more := true; more; {
			to, ok := p.neighbourWithRoom(i)
			if !ok {
				to, _ = rooms.top()
			}
			_, rest := p.give(i, d.fitting(p, i, to), to)
			if more = len(rest) > 0; more {
				i = rest[0]
			}
		}
	}
}

// spare returns the difference between member m's fair load and its load.
func (p *plan) spare(m int32) float64 { return p.weight[m]/p.weights - p.load[m] }

// fitting returns the span of lost part i that member m takes, from its start on.
func (d *decision) fitting(p *plan, i, m int32) span {
	s, spare := p.parts[i].span, p.spare(m)
	if p.parts[i].cost <= spare+d.Tolerance/2*p.weight[m]/p.weights || spare < d.chunk(p)/8 {
		return s
	}
	atoms := p.atoms(s)
	if cut, ok := edge(atoms, spare, allKeys, fromStart); ok {
		return cut
	}
	return atoms[0].span // one key that exceeds the spare load of all members
}

// neighbourWithRoom returns the owner of an adjacent part with enough spare load for part i.
func (p *plan) neighbourWithRoom(i int32) (int32, bool) {
	x := &p.parts[i]
	for _, n := range []int32{x.prev, x.next} {
		if n == none || p.parts[n].owner == noOwner {
			continue
		}
		if o := p.parts[n].owner; p.spare(o) >= x.cost {
			return o, true
		}
	}
	return 0, false
}

// welcome assigns to members without keys their share, from the members with
// the most load per weight.
func (d *decision) welcome(p *plan) {
	donors := p.where(func(m int32) bool { return p.slots[m] > 0 })
	w := welcome{
		plan:   p,
		donors: newRanking(func(m int32) float64 { return p.load[m] / p.weight[m] }, donors...),
		ranges: make(map[int32]*ranking),
	}
	for _, m := range p.where(func(m int32) bool { return p.slots[m] == 0 }) {
		w.member(m, pieces(d.Ranges, p.members[m]))
		if p.slots[m] == 0 {
			w.anything(m)
		}
	}
}

// welcome is the state of welcome.
type welcome struct {
	*plan
	donors *ranking           // members that had keys, by load per weight
	ranges map[int32]*ranking // the parts of donors, by cost
}

// member assigns to member m its fair load, in about n parts.
func (w *welcome) member(m int32, n int) {
	if w.walked > maxWalked {
		n = 1 // thousands of members join a few: one range each
	}
	fair := w.weight[m] / w.weights
	for range 8 * n {
		need := fair - w.load[m]
		from, ok := w.donors.top()
		if !ok || need <= fair/float64(8*n) && w.slots[m] > 0 {
			return
		}
		if !w.take(m, from, min(need, fair/float64(n)), need) {
			w.donors.drop() // has no part that m can take
		}
	}
}

// anything assigns to m half of the longest range. It is for members without another choice,
// because the keys of all donors cost more than they need.
func (w *welcome) anything(m int32) {
	longest := int32(0)
	for i := range w.parts {
		if x := &w.parts[i]; !x.merged && x.keys() > w.parts[longest].keys() {
			longest = int32(i)
		}
	}
	s := w.parts[longest].span
	s.start += leasehold.Key(s.keys() / 2)
	w.give(longest, s, m)
}

// take moves a part of from to m: its costliest range if that costs at most
// twice the wanted size and at most what m needs, otherwise a piece of it.
func (w *welcome) take(m, from int32, size, need float64) bool {
	ranges := w.of(from)
	for {
		i, ok := ranges.top()
		if !ok {
			return false
		}
		ranges.drop()
		x := &w.parts[i]
		if !w.has(from, i) {
			continue
		}
		s := x.span
		if whole := x.cost <= min(2*size, 1.05*need) && w.slots[from] > 1; !whole {
			end := fromStart
			if x.next != none && w.parts[x.next].owner == m {
				end = fromEnd
			}
			if s, ok = edge(w.atoms(s), size, allKeys, end); !ok || s == x.span {
				continue // a key that costs more than size, or the whole range
			}
		}
		_, rest := w.give(i, s, m)
		for _, i := range rest {
			ranges.push(i)
		}
		return true
	}
}

// of returns the parts of a donor, by cost.
func (w *welcome) of(m int32) *ranking {
	if w.ranges[m] == nil {
		w.ranges[m] = newRanking(func(i int32) float64 { return w.parts[i].cost }, w.held[m]...)
	}
	return w.ranges[m]
}
