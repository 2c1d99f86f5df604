package keyindex

import (
	"math/bits"

	"github.com/leasehold-dev/leasehold"
)

// An Index finds keys among ranges that follow on each other without gaps. It is
// immutable, and safe for concurrent use.
type Index struct {
	starts []leasehold.Key
	root   level
	crowds []level // of the crowded slots of root
}

// A level cuts the keys from base on into slots of equal width, 1 << shift keys,
// the last of which has no end. A slot is the index of the last start before it;
// in the root it may instead be a crowd: the bit crowded and an index of crowds.
type level struct {
	base  leasehold.Key // the first start that the level tells apart
	shift uint8
	slots []uint32
}

const (
	// few is how many starts a slot of the root may have: so many are found
	// sooner by walking than through another level.
	few     = 8
	crowded = 1 << 31
)

// New returns an index of the ranges that begin at starts, each of which ends
// where the next begins. The first start must be 0, and they must rise strictly;
// there may be no more than 1<<31. The index keeps starts, which must not be
// changed any more.
//
// It takes linear time, 3 to 7 ns for each range, and 4 to 20 bytes for each
// beside its start.
func New(starts []leasehold.Key) *Index {
	x := &Index{starts: starts, root: newLevel(starts, 1, len(starts))}
	slots := x.root.slots
	for s := range len(slots) - 1 {
		before, last := slots[s], slots[s+1]
		if last-before > few {
			slots[s] = crowded | uint32(len(x.crowds))
			x.crowds = append(x.crowds, newLevel(starts, int(before)+1, int(last)+1))
		}
	}
	return x
}

// newLevel returns a level that tells the starts from first up to limit apart:
// with one to two slots for each, if they are spread evenly.
func newLevel(starts []leasehold.Key, first, limit int) level {
	count := limit - first
	if count == 0 {
		return level{slots: []uint32{0}} // a single range
	}
	base := starts[first]
	span := uint64(starts[limit-1] - base)
	l := level{base: base, shift: uint8(max(0, bits.Len64(span)-bits.Len(uint(count))))}
	l.slots = make([]uint32, span>>l.shift+2)

	// Every start says so in the slot behind its own, where the last one stays;
	// slots behind which nothing starts take over from the slot before. Neither
	// loop has a branch to be mispredicted.
	for i := first; i < limit; i++ {
		l.slots[uint64(starts[i]-base)>>(l.shift&63)+1] = uint32(i)
	}
	last := uint32(first - 1)
	for s, i := range l.slots {
		last = max(last, i)
		l.slots[s] = last
	}
	return l
}

// slot returns the number of k's slot. The key is not before the level's base.
func (l *level) slot(k leasehold.Key) int {
	return int(min(uint64(k-l.base)>>(l.shift&63), uint64(len(l.slots)-1)))
}

// Find returns the index of the range that contains k: of the last start that is
// not beyond k. It does not allocate.
func (x *Index) Find(k leasehold.Key) int {
	if k < x.root.base {
		return 0
	}
	slot := x.root.slots[x.root.slot(k)]
	if slot >= crowded {
		return x.crowds[slot-crowded].find(x.starts, k)
	}
	i, last := int(slot), len(x.starts)-1
	// Which of the next two starts are not beyond k? Behind the last start there
	// is none, and it stands in for them.
	var one, two int
	if x.starts[min(i+1, last)] <= k {
		one = 1
	}
	if x.starts[min(i+2, last)] <= k {
		two = 1
	}
	i += one + two
	if two == 1 {
		for i < last && x.starts[i+1] <= k {
			i++
		}
	}
	return min(i, last)
}

// find returns the index of the last start that is not beyond k, for a key of
// the level's slot in the root.
func (l *level) find(starts []leasehold.Key, k leasehold.Key) int {
	if k < l.base {
		return int(l.slots[0]) // the last start before base
	}
	s := l.slot(k)
	lo, hi := int(l.slots[s]), int(l.slots[min(s+1, len(l.slots)-1)])
	for lo < hi { // the answer is in [lo, hi]
		mid := int(uint(lo+hi+1) / 2)
		if starts[mid] <= k {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo
}
