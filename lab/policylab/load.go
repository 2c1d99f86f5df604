package policylab

import (
	"cmp"
	"slices"

	"github.com/leasehold-dev/leasehold"
)

// A Load is what every key costs at one time: some keys have a cost of their
// own, and all keys share what is spread evenly, in steps of any density. It is
// immutable, and safe for concurrent use. Costs are relative: a run takes the
// total of its first period that has one for 1.
type Load struct {
	keys  []KeyCost // sorted by key, each once
	steps []step    // sorted by start; the first starts at 0
	total float64
	most  float64 // of keys
}

// A KeyCost is a key and what it costs.
type KeyCost struct {
	Key  leasehold.Key
	Cost float64
}

// A RangeCost is a range of keys and what they cost together, each the same.
type RangeCost struct {
	Range leasehold.Range
	Cost  float64
}

// A step has the density of the keys from start on: what the whole key space
// would cost if all of it were like them.
type step struct {
	start   leasehold.Key
	density float64
}

func (s step) begin() leasehold.Key { return s.start }

const spaceSize = 1 << 64

// newLoad returns a load of single keys, in any order, and of ranges that are
// sorted and do not overlap. Keys that are there twice cost the sum. It takes
// over keys.
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

// joinEqual adds up neighbours of the same key, in place.
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

// appendStep gives a density to the keys from start on, which is not before the
// last step.
func (l *Load) appendStep(start leasehold.Key, density float64) {
	if last := &l.steps[len(l.steps)-1]; last.start == start {
		last.density = density
		return
	}
	l.steps = append(l.steps, step{start, density})
}

// share is the share of the key space that a range has.
func share(r leasehold.Range) float64 { return distance(r.Start, r.Limit) / spaceSize }

// distance is the number of keys from start up to limit, which is after start
// or, as the end of the key space, 0.
func distance(start, limit leasehold.Key) float64 {
	if n := uint64(limit - start); n > 0 {
		return float64(n)
	}
	return spaceSize
}

// Total is what all keys cost together.
func (l *Load) Total() float64 { return l.total }

// Hottest is what the key costs that costs most: 0 if none has a cost of its
// own, since what is spread evenly over a range has next to none per key.
func (l *Load) Hottest() float64 { return l.most }

// A cursor adds up a load from left to right.
type cursor struct {
	load *Load
	at   leasehold.Key
	key  int // the first key that is not added up yet
	step int // the step of at
}

// to returns what the keys from where the cursor is up to limit cost, and goes
// there. The limit is beyond the cursor; 0 is the end of the key space, from
// where there is no way on.
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
