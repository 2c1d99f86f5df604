package policylab

import (
	"cmp"
	"slices"

	"github.com/leasehold-dev/leasehold"
)

// A Load has the cost of every key at one time: some keys have a cost of their own, and the rest is spread
// evenly over ranges, with a density for each. It is immutable, and safe for concurrent use. Costs are
// relative: a run divides them by the total of the first period with a cost.
type Load struct {
	keys  []KeyCost // sorted by key, each once
	steps []step    // sorted by start; the first starts at 0
	total float64
	most  float64 // of keys
}

// A KeyCost is the cost of a key.
type KeyCost struct {
	Key  leasehold.Key
	Cost float64
}

// A RangeCost is the total cost of a range of keys with equal costs.
type RangeCost struct {
	Range leasehold.Range
	Cost  float64
}

// A step has the density of the keys from start on: the total cost if the whole key space had that density.
type step struct {
	start   leasehold.Key
	density float64
}

func (s step) begin() leasehold.Key { return s.start }

const spaceSize = 1 << 64

// newLoad returns a load of single keys, in any order, and of ranges that are sorted and do not overlap. The
// costs of equal keys are added. It takes ownership of keys.
func newLoad(keys []KeyCost, ranges []RangeCost) *Load {
	slices.SortFunc(keys, func(a, b KeyCost) int { return cmp.Compare(a.Key, b.Key) })
	l := &Load{keys: joinEqual(keys), steps: []step{{}}}
	for _, r := range ranges {
		l.appendStep(r.Range.Start, r.Cost/share(r.Range))
		if r.Range.Limit != 0 {
			l.appendStep(r.Range.Limit, 0)
		}
		l.total += r.Cost
	}
	for _, k := range l.keys {
		l.total += k.Cost
		l.most = max(l.most, k.Cost)
	}
	return l
}

// joinEqual merges adjacent equal keys, in place.
func joinEqual(keys []KeyCost) []KeyCost {
	joined := keys[:0]
	for _, k := range keys {
		if n := len(joined); n > 0 && joined[n-1].Key == k.Key {
			joined[n-1].Cost += k.Cost
			continue
		}
		joined = append(joined, k)
	}
	return joined
}

// appendStep sets the density of the keys from start on, which is not before the last step.
func (l *Load) appendStep(start leasehold.Key, density float64) {
	if last := &l.steps[len(l.steps)-1]; last.start == start {
		last.density = density
		return
	}
	l.steps = append(l.steps, step{start, density})
}

// share returns the fraction of the key space in a range.
func share(r leasehold.Range) float64 { return distance(r.Start, r.Limit) / spaceSize }

// distance returns the number of keys from start to limit, which is after start or 0, the end of the key
// space.
func distance(start, limit leasehold.Key) float64 {
	if n := uint64(limit - start); n > 0 {
		return float64(n)
	}
	return spaceSize
}

// Total returns the total cost of all keys.
func (l *Load) Total() float64 { return l.total }

// Hottest returns the cost of the most expensive key: 0 if no key has a cost of its own, because the cost per
// key of a range is negligible.
func (l *Load) Hottest() float64 { return l.most }

// A cursor sums a load from left to right.
type cursor struct {
	load *Load
	at   leasehold.Key
	key  int // the first key that is not in the sum
	step int // the step of at
}

// to returns the cost of the keys from the cursor to limit, and moves the cursor to limit, which is beyond
// the cursor; 0 is the end of the key space, and then the cursor cannot move further.
func (c *cursor) to(limit leasehold.Key) float64 {
	sum, keys := 0.0, c.load.keys
	for c.key < len(keys) && keys[c.key].Key <= limit-1 {
		sum += keys[c.key].Cost
		c.key++
	}
	spread, steps := 0.0, c.load.steps
	for c.step+1 < len(steps) && steps[c.step+1].start <= limit-1 {
		next := steps[c.step+1].start
		spread += steps[c.step].density * distance(c.at, next)
		c.at = next
		c.step++
	}
	spread += steps[c.step].density * distance(c.at, limit)
	c.at = limit
	if c.step+1 < len(steps) && steps[c.step+1].start == limit {
		c.step++
	}
	return sum + spread/spaceSize
}
