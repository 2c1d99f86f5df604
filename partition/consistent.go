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
	DefaultVirtualNodes = 64 // as in the papers
	MaxVirtualNodes     = 4096
)

// Consistent is consistent hashing with virtual nodes: every member has many
// points on the circle of keys, and a key belongs to the member with
// the first point at or after it, wrapping at the end. An owner that joins takes
// keys from the others and moves none between them; the keys of an owner that
// leaves move to the others, and no other key moves.
//
// The points are a stable format, on which other implementations can rely.
// Point i of a member, counting from 0, is
//
//	leasehold.KeyOf(name + "#" + decimal i)
//
// A member of weight w has round(VirtualNodes*w) points, at least one. If
// points of several members are at one key, the member whose name sorts first
// has it. The vectors are in testdata/points.tsv.
//
// If the points would make more ranges than [Limits] allow, every member has
// fewer, in proportion. The points with the highest numbers are omitted, so
// that a pool that grows past the limit still moves few keys at each step, and
// every key keeps an owner.
//
// Assign takes linear time in the number of points, about 4 ms for 64,000.
type Consistent struct {
	// VirtualNodes is the number of points of a member of weight 1, up to
	// MaxVirtualNodes; 0 means DefaultVirtualNodes. More points make the
	// shares more even (the standard deviation is about 1/sqrt(VirtualNodes) of the
	// mean) and the table longer, with one range per point.
	VirtualNodes int
}

// Name returns "consistent".
func (Consistent) Name() string { return "consistent" }

// Assign assigns every key to a member; without members, keys have no owner.
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
	// The arc that wraps is two slots, so n points make up to n+1;
	// but a single member has one slot for any number of points.
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

// pieces scales n, the number of points or ranges for weight 1, to a member's weight.
func pieces(n int, m Member) int { return max(1, int(math.Round(float64(n)*m.Weight))) }

// piecesOf returns pieces for each member.
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

// limitCounts lowers counts to at most perOwner each, unless perOwner is negative,
// and to a sum of at most budget. Each count stays at least 1, and the excess over 1
// shrinks in proportion.
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

// pointKey returns point i of the member whose name and "#" are prefix. It may write
// to the spare capacity of prefix.
func pointKey(prefix []byte, i int) leasehold.Key {
	return leasehold.Key(xxhash.Sum64(strconv.AppendInt(prefix, int64(i), 10)))
}

// circle converts sorted points to slots. The slot of a point begins after
// the previous point; the first point also has the keys after the last point.
func circle(members []Member, points []point) Assignment {
	if len(points) == 0 {
		return Assignment{{}}
	}
	a := make(Assignment, 0, len(points)+1)
	start := leasehold.Key(0)
	for _, p := range points {
		if p.key < start {
			continue // at the same key as the previous point, which has it
		}
		a = a.Append(start, members[p.member].Owner)
		if start = p.key + 1; start == 0 {
			return a // the last point is at the last key
		}
	}
	return a.Append(start, members[points[0].member].Owner)
}

// The radix passes of sortPoints sort by the top bytes of a key. At
// 64,000 points three passes leave about one point in 250 for the comparison sort;
// two would leave most of them, and a fourth almost none.
const (
	radixPasses = 3
	radixShift  = 64 - 8*radixPasses
)

// sortPoints sorts points by key and then by member. It uses points as
// scratch space and returns a sorted slice that may be another.
//
// Hashes are uniformly distributed, so a radix sort by their top bytes does most of
// the work, several times faster than comparisons. Points with equal top bytes
// are then sorted by comparison, which bounds the time for any names, and so
// hashes, that peers choose.
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
// points with equal bytes in their previous order.
func scatter(to, from []point, shift int) {
	var next [256]int // index of the next point with this byte
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
