package partition

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"github.com/leasehold-dev/leasehold"
)

// Limits and default of [Consistent.VirtualNodes].
const (
	DefaultVirtualNodes = 64 // the papers' number
	MaxVirtualNodes     = 4096
)

// Consistent is consistent hashing with virtual nodes: every member has many
// points on the circle of keys, and a key belongs to the member whose point is
// the first at or after it, going round at the end. An owner that joins takes
// keys from the others and moves none between them; the keys of one that
// leaves go to the others, and no other key moves.
//
// The points are a stable format, which other implementations can rely on.
// Point i of a member, counting from 0, is
//
//	leasehold.KeyOf(name + "#" + decimal i)
//
// A member of weight w has round(VirtualNodes*w) points, at least one. Where
// points of several members fall on one key, the member whose name sorts first
// has it. The vectors are in testdata/points.tsv.
//
// If the points would make more ranges than [Limits] allow, every member has
// fewer, in proportion. It is the points of the highest numbers that go, so
// that a pool growing past the limit still moves few keys at each step, and
// every key keeps an owner.
//
// Assign takes linear time in the number of points, about 4 ms for 64,000.
type Consistent struct {
	// VirtualNodes is the number of points of a member of weight 1, up to
	// MaxVirtualNodes; 0 means DefaultVirtualNodes. More points even out the
	// shares (the standard deviation is about 1/sqrt(VirtualNodes) of the
	// mean) and make a longer table, of as many ranges as there are points.
	VirtualNodes int
}

// Name returns "consistent".
func (Consistent) Name() string { return "consistent" }

// Assign gives every key to a member, or to nobody if there is none.
func (c Consistent) Assign(in Input) (Assignment, error) {
	if err := ValidateInput(in); err != nil {
		return nil, err
	}
	counts, err := nodeCounts(c.Name(), c.VirtualNodes, in)
	if err != nil {
		return nil, err
	}
	return circle(in.Members, sortPoints(appendPoints(in.Members, counts))), nil
}

// nodeCounts returns the number of points of each member on a circle, for a
// policy with so many virtual nodes.
func nodeCounts(policy string, nodes int, in Input) ([]int, error) {
	if err := validateNodes(policy, nodes); err != nil {
		return nil, err
	}
	nodes = cmp.Or(nodes, DefaultVirtualNodes)
	// The arc that goes round is two slots, so that n points make up to n+1;
	// but a single member has one slot however many points it has.
	budget := max(1, in.Limits.maxRanges()-1)
	if len(in.Members) > budget {
		return nil, tooFewRanges(policy, in, len(in.Members)+1)
	}
	counts := piecesOf(nodes, in.Members)
	limitCounts(counts, in.Limits.MaxPerOwner-1, budget)
	return counts, nil
}

func validateNodes(policy string, nodes int) error {
	if nodes < 0 || nodes > MaxVirtualNodes {
		return leasehold.Errorf("assign", leasehold.ErrInvalid, policy,
			"%d virtual nodes, want 1 to %d, or 0 for %d", nodes, MaxVirtualNodes, DefaultVirtualNodes)
	}
	return nil
}

// pieces returns how many of something a member has, if one of weight 1 has n.
func pieces(n int, m Member) int { return max(1, int(math.Round(float64(n)*m.Weight))) }

// piecesOf returns how many of something each member has.
func piecesOf(n int, members []Member) []int {
	counts := make([]int, len(members))
	for i, m := range members {
		counts[i] = pieces(n, m)
	}
	return counts
}

func total(counts []int) int {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return sum
}

// limitCounts lowers counts to at most perOwner each, unless that is negative,
// and to a sum of at most budget. At least 1 of each remains, and the others
// shrink in proportion.
func limitCounts(counts []int, perOwner, budget int) {
	if perOwner >= 0 {
		for i := range counts {
			counts[i] = min(counts[i], max(1, perOwner))
		}
	}
	sum := total(counts)
	if sum <= budget {
		return
	}
	spare, wanted := int64(budget-len(counts)), int64(sum-len(counts))
	for i, n := range counts {
		counts[i] = 1 + int(int64(n-1)*spare/wanted)
	}
}

// A point is a member's virtual node on the circle of keys.
type point struct {
	key    leasehold.Key
	member int32 // index into the sorted members
}

// appendPoints returns the points of all members, in the order of members.
func appendPoints(members []Member, counts []int) []point {
	points := make([]point, 0, total(counts))
	var text [leasehold.MaxOwnerIDLen + 24]byte
	for m := range members {
		prefix := append(append(text[:0], members[m].Owner...), '#')
		for i := range counts[m] {
			points = append(points, point{pointKey(prefix, i), int32(m)})
		}
	}
	return points
}

// pointKey is point i of the member whose name and "#" are prefix. It may write
// behind prefix.
func pointKey(prefix []byte, i int) leasehold.Key {
	return leasehold.Key(xxhash.Sum64(strconv.AppendInt(prefix, int64(i), 10)))
}

// circle turns sorted points into slots. The slot of a point begins behind
// the point before it; the first point also has what lies behind the last.
func circle(members []Member, points []point) Assignment {
	if len(points) == 0 {
		return Assignment{{}}
	}
	a := make(Assignment, 0, len(points)+1)
	start := leasehold.Key(0)
	for _, p := range points {
		if p.key < start {
			continue // on the same key as the point before, which has it
		}
		a = a.Append(start, members[p.member].Owner)
		if start = p.key + 1; start == 0 {
			return a // the last point is on the last key: nothing lies behind
		}
	}
	return a.Append(start, members[points[0].member].Owner)
}

// The top bytes of a key are what the radix passes of sortPoints look at. At
// 64,000 points three leave about one point in 250 for the comparison sort;
// two would leave most of them, and a fourth has next to nothing left to do.
const (
	radixPasses = 3
	radixShift  = 64 - 8*radixPasses
)

// sortPoints sorts points by key and then by member. It uses points as
// scratch space and returns a sorted slice that may be another.
//
// Hashes spread evenly, so a radix sort on their top bytes all but finishes
// the work, several times faster than comparing. What is equal in those bytes
// is then sorted by comparison, which bounds the time whatever names, and so
// hashes, peers choose.
func sortPoints(points []point) []point {
	from, to := points, make([]point, len(points))
	for shift := radixShift; shift < 64; shift += 8 {
		scatter(to, from, shift)
		from, to = to, from
	}
	for i := 0; i < len(from); {
		j := i + 1
		for j < len(from) && from[j].key>>radixShift == from[i].key>>radixShift {
			j++
		}
		if j-i > 1 {
			slices.SortFunc(from[i:j], comparePoints)
		}
		i = j
	}
	return from
}

// scatter copies from into to, sorted by the byte of the key at shift, with
// points of equal bytes in the order they had.
func scatter(to, from []point, shift int) {
	var next [256]int // where the next point with this byte goes
	for i := range from {
		next[byte(from[i].key>>shift)]++
	}
	sum := 0
	for b, n := range next {
		next[b] = sum
		sum += n
	}
	for _, p := range from {
		b := byte(p.key >> shift)
		to[next[b]] = p
		next[b]++
	}
}

func comparePoints(a, b point) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.member, b.member))
}
