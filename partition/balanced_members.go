package partition

import (
	"cmp"
	"slices"

	"github.com/leasehold-dev/leasehold"
)

// This file is about owners that come and go. A member's fair load is its part
// of all weights: then all have the same load for their weight.

// chunk is what one of a member's ranges costs in the beginning, and so the
// grain in which members that come and go take and leave load.
func (d *decision) chunk(p *plan) float64 { return 1 / p.weights / float64(d.Ranges) }

// replaceLost gives what no member has to those who have the least for their
// weight. Whole ranges go where they fit, a little beyond the fair load if need
// be; what is larger than the room that anybody has is cut.
func (d *decision) replaceLost(p *plan) {
	var lost []int32
	for i := range p.parts {
		if x := &p.parts[i]; !x.gone && x.owner == nobody {
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

// spare is how much member m is below its fair load.
func (p *plan) spare(m int32) float64 { return p.weight[m]/p.weights - p.load[m] }

// fitting returns how much of lost part i member m takes, from its start on.
func (d *decision) fitting(p *plan, i, m int32) span {
	s, spare := p.parts[i].span, p.spare(m)
	if p.parts[i].cost <= spare+d.Tolerance/2*p.weight[m]/p.weights || spare < d.chunk(p)/8 {
		return s
	}
	atoms := p.atoms(s)
	if cut, ok := edge(atoms, spare, allKeys, fromStart); ok {
		return cut
	}
	return atoms[0].span // one key, and more than anybody has room for
}

// neighbourWithRoom returns an owner beside part i that can take all of it.
func (p *plan) neighbourWithRoom(i int32) (int32, bool) {
	x := &p.parts[i]
	for _, n := range []int32{x.prev, x.next} {
		if n == none || p.parts[n].owner == nobody {
			continue
		}
		if o := p.parts[n].owner; p.spare(o) >= x.cost {
			return o, true
		}
	}
	return 0, false
}

// welcome gives members without keys their share, taken from those who have
// the most for their weight.
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

// welcome is the work of giving keys to members that have none.
type welcome struct {
	*plan
	donors *ranking           // members that had keys, by load for their weight
	ranges map[int32]*ranking // the parts of each that was asked, by cost
}

// member gives member m its fair load, in about n parts.
func (w *welcome) member(m int32, n int) {
	if w.walked > maxWalked {
		n = 1 // thousands join few: a range each must do
	}
	fair := w.weight[m] / w.weights
	for range 8 * n {
		need := fair - w.load[m]
		from, ok := w.donors.top()
		if !ok || need <= fair/float64(8*n) && w.slots[m] > 0 {
			return
		}
		if !w.take(m, from, min(need, fair/float64(n)), need) {
			w.donors.drop() // it has nothing that can be taken
		}
	}
}

// anything gives m half of the longest range. It is for members that find
// nothing else, because others have only keys that cost more than they need.
func (w *welcome) anything(m int32) {
	longest := int32(0)
	for i := range w.parts {
		if x := &w.parts[i]; !x.gone && x.keys() > w.parts[longest].keys() {
			longest = int32(i)
		}
	}
	s := w.parts[longest].span
	s.start += leasehold.Key(s.keys() / 2)
	w.give(longest, s, m)
}

// take gives m a part of what from has: its costliest range if that costs no
// more than two of the wanted size and than m needs, or else a piece of it.
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
				continue // a key that costs more than is wanted, or all that its owner has
			}
		}
		_, rest := w.give(i, s, m)
		for _, i := range rest {
			ranges.push(i)
		}
		return true
	}
}

// of returns the parts of a member that had keys, by cost.
func (w *welcome) of(m int32) *ranking {
	if w.ranges[m] == nil {
		w.ranges[m] = newRanking(func(i int32) float64 { return w.parts[i].cost }, w.held[m]...)
	}
	return w.ranges[m]
}
