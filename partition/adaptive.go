package partition

import (
	"cmp"
	"slices"

	"github.com/leasehold-dev/leasehold"
)

// Adaptive is the papers' load management (Centrifuge 2.1.2, PRS 4.5):
// consistent hashing in which a member whose load is more than 10 % above the
// mean loses a virtual node, and one more than 10 % below gains one, at every
// decision. The points are those of [Consistent]; a member of count n has its
// points 0 to n-1.
//
// Nodes are lost and gained in pairs, so that their number stays what
// Consistent would have. If more members are above than below, the others of a
// pair are those furthest on the other side of the mean. The keys that move
// are never more than Input.Budget. Loads count in proportion to weights.
//
// The counts are not stored: they follow from the current assignment. A point at
// the end of one of its member's slots is there; one within such a slot may be
// there or not. Of the counts that are possible, the one nearest to that of
// Consistent is taken. Their sum can drift by as much, and then members gain or
// lose without a partner until it is right again. A member without a point that
// is there is new, or has its keys from another policy, and begins with the count
// of Consistent.
//
// A step is one virtual node, a 64th of a member's share, so that large
// differences take many decisions; and a hot key goes where its virtual node
// goes. It is here to be compared with: [Balanced] does better.
//
// Assign takes linear time in the points and the cells, about six times that of
// Consistent, and once more that of Consistent for every halving that the budget
// asks for.
type Adaptive struct {
	// VirtualNodes is the number of points that a member of weight 1 begins
	// with, and the mean of what such members have, up to MaxVirtualNodes; 0
	// means DefaultVirtualNodes.
	VirtualNodes int
}

// Name returns "adaptive".
func (Adaptive) Name() string { return "adaptive" }

// band is how far from the mean a member's load may be.
const band = 0.10

// Assign gives every key to a member, or to nobody if there is none.
func (d Adaptive) Assign(in Input) (Assignment, error) {
	if err := ValidateInput(in); err != nil {
		return nil, err
	}
	usual, err := nodeCounts(d.Name(), d.VirtualNodes, in)
	if err != nil {
		return nil, err
	}
	nodes := readNodes(in, usual)
	stay := nodes.assign(in, 0)
	changes := nodes.rank(in, usual)
	for n := changes; n > 0; n /= 2 {
		if a := nodes.assign(in, n); Moved(stay, a) <= in.Budget {
			return a, nil
		}
	}
	return stay, nil
}

// nodes is how many virtual nodes each member has, and who should have more or
// fewer.
type nodes struct {
	count []int // how many each member is taken to have
	sure  []int // how many it must have, and
	most  []int // may have, by the current assignment
	// The members that gain and lose a node, in pairs of the same place. A pair
	// that is there to correct the sum of all has only one member in it.
	gain, lose []int32
}

// readNodes reads the counts off the current assignment. A member that has
// none gets its usual number.
func readNodes(in Input, usual []int) *nodes {
	n := &nodes{count: slices.Clone(usual), sure: make([]int, len(usual)), most: make([]int, len(usual))}
	var text [leasehold.MaxOwnerIDLen + 24]byte
	for m, member := range in.Members {
		prefix := append(append(text[:0], member.Owner...), '#')
		for i := range MaxVirtualNodes {
			key := pointKey(prefix, i)
			slot := in.Current.index(key)
			if slot < 0 || in.Current[slot].Owner != member.Owner {
				break
			}
			n.most[m] = i + 1
			if in.Current.rangeAt(slot).Last() == key {
				n.sure[m] = i + 1
			}
		}
		if n.sure[m] > 0 {
			n.count[m] = min(max(usual[m], n.sure[m]), n.most[m])
		}
	}
	return n
}

// rank finds who should gain and lose a node, the furthest from the mean
// first, and returns how many pairs there are: none while too little is known.
func (n *nodes) rank(in Input, usual []int) int {
	c := newCosts(in.Loads)
	if in.Current == nil || !c.known() {
		return 0
	}
	p := newPlan(in.Members, in.Current, c)
	if p.coverage() < EnoughKnown {
		return 0
	}
	over := func(m int32) float64 { return p.load[m] / p.weight[m] * p.weights } // 1 is the mean
	tooHigh, tooLow := 0, 0
	for m := range int32(len(usual)) {
		switch ratio := over(m); {
		case n.sure[m] == 0:
			continue // it is new, and what it has will change anyway
		case ratio > 1 && n.sure[m] > 1:
			n.lose = append(n.lose, m)
			tooHigh += truth(ratio > 1+band)
		case ratio < 1:
			n.gain = append(n.gain, m)
			tooLow += truth(ratio < 1-band)
		}
	}
	slices.SortStableFunc(n.lose, func(a, b int32) int { return cmp.Compare(over(b), over(a)) })
	slices.SortStableFunc(n.gain, func(a, b int32) int { return cmp.Compare(over(a), over(b)) })

	pairs := min(max(tooHigh, tooLow), len(n.lose), len(n.gain))
	missing := total(usual) - total(n.count) // gained without a partner, or lost if negative
	n.gain = n.gain[:max(pairs, min(tooLow, pairs+missing))]
	n.lose = n.lose[:max(pairs, min(tooHigh, pairs-missing))]
	return max(len(n.gain), len(n.lose))
}

// assign returns the assignment if the first pairs gain and lose their nodes.
func (n *nodes) assign(in Input, pairs int) Assignment {
	counts := slices.Clone(n.count)
	for _, m := range n.gain[:min(pairs, len(n.gain))] {
		counts[m] = n.most[m] + 1
	}
	for _, m := range n.lose[:min(pairs, len(n.lose))] {
		counts[m] = n.sure[m] - 1
	}
	limitCounts(counts, in.Limits.MaxPerOwner-1, max(1, in.Limits.maxRanges()-1))
	return circle(in.Members, sortPoints(appendPoints(in.Members, counts)))
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}
