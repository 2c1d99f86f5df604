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
// Nodes are lost and gained in pairs, so that their number stays that of
// Consistent. If more members are above than below, their partners are the members
// furthest on the other side of the mean. At most Input.Budget of the keys
// move. Loads count in proportion to weights.
//
// The counts are not stored: they are derived from the current assignment. A point at
// the end of one of its member's slots exists; a point within such a slot may
// exist or not. Of the possible counts, the one nearest to that of
// Consistent is used. So their sum can drift, and then members gain or
// lose nodes without a partner until it is correct again. A member without an existing point
// is new, or has its keys from another policy, and starts with the count
// of Consistent.
//
// A step is one virtual node, a 64th of a member's share, so large
// differences take many decisions; and a hot key moves with its virtual node.
// It is for comparison: [Balanced] is better.
//
// Assign takes linear time in the points and the cells, about six times that of
// Consistent, and once more that of Consistent for every halving due to the
// budget.
type Adaptive struct {
	// VirtualNodes is the initial number of points of a member of weight 1,
	// and the mean over such members, up to MaxVirtualNodes; 0
	// means DefaultVirtualNodes.
	VirtualNodes int
}

// Name returns "adaptive".
func (Adaptive) Name() string { return "adaptive" }

// band is the maximum deviation of a member's load from the mean.
const band = 0.10

// Assign assigns every key to a member; without members, keys have no owner.
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

// nodes contains the number of virtual nodes of each member, and the members that gain or lose
// one.
type nodes struct {
	count []int // of each member
	sure  []int // minimum according to the current assignment
	most  []int // maximum according to the current assignment
	// The members that gain and lose a node, in pairs of the same index. A pair
	// that corrects the sum has only one member.
	gain, lose []int32
}

// readNodes derives the counts from the current assignment. A member without nodes
// gets its usual number.
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

// rank finds the members that gain and lose a node, the furthest from the mean
// first, and returns the number of pairs: 0 while too few loads are known.
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
			continue // new, and its keys change anyway
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

// assign returns the assignment after the first pairs have gained and lost their nodes.
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
