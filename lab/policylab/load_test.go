package policylab

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/leasehold-dev/leasehold"
)

// near reports whether two numbers differ only by rounding.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

// drawLoad draws a load of some keys and ranges, also at the edges of the key space.
func drawLoad(t *rapid.T) *Load {
	edge := rapid.SampledFrom([]uint64{0, 1, 1 << 32, 1 << 63, math.MaxUint64 - 1, math.MaxUint64})
	key := rapid.Map(rapid.OneOf(edge, rapid.Uint64()), func(k uint64) leasehold.Key { return leasehold.Key(k) })
	cost := rapid.Float64Range(0, 10)
	var keys []KeyCost
	for range rapid.IntRange(0, 20).Draw(t, "keys") {
		keys = append(keys, KeyCost{key.Draw(t, "key"), cost.Draw(t, "cost")})
	}
	var ranges []RangeCost
	bounds := drawBounds(t, 8)
	for i, start := range bounds {
		if rapid.Bool().Draw(t, "loaded") {
			ranges = append(ranges, RangeCost{rangeOf(bounds, i, start), cost.Draw(t, "cost")})
		}
	}
	return newLoad(keys, ranges)
}

// drawBounds draws the starts of some ranges that cover the key space.
func drawBounds(t *rapid.T, most int) []leasehold.Key {
	starts := rapid.SliceOfNDistinct(rapid.OneOf(rapid.Uint64Min(1), rapid.SampledFrom([]uint64{1, 2, 1 << 63, math.MaxUint64})),
		0, most, rapid.ID).Draw(t, "bounds")
	keys := []leasehold.Key{0}
	for _, s := range starts {
		keys = append(keys, leasehold.Key(s))
	}
	slices.Sort(keys)
	return keys
}

func rangeOf(bounds []leasehold.Key, i int, start leasehold.Key) leasehold.Range {
	if i+1 < len(bounds) {
		return leasehold.Range{Start: start, Limit: bounds[i+1]}
	}
	return leasehold.Range{Start: start}
}

// TestLoadIsConserved: the parts of any division of the key space add up.
func TestLoadIsConserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		load := drawLoad(t)
		bounds := drawBounds(t, 20)
		c, sum := cursor{load: load}, 0.0
		for i, start := range bounds {
			part := c.to(rangeOf(bounds, i, start).Limit)
			if part < 0 {
				t.Fatalf("a part from %v costs %v", start, part)
			}
			sum += part
		}
		if !near(sum, load.Total()) {
			t.Fatalf("the parts cost %v, all %v", sum, load.Total())
		}
	})
}

// TestLoadOfKeysAndRanges checks each key and range separately.
func TestLoadOfKeysAndRanges(t *testing.T) {
	const half = 1 << 63
	load := newLoad(
		[]KeyCost{{math.MaxUint64, 4}, {7, 1}, {half, 2}, {7, 0.5}},
		[]RangeCost{{leasehold.Range{Start: 0, Limit: half}, 8}, {leasehold.Range{Start: half + half/2}, 16}},
	)
	c := cursor{load: load}
	for _, part := range []struct {
		limit leasehold.Key
		want  float64
	}{
		{7, 8 * 7 / float64(half)},
		{8, 1.5}, // key 7, given twice
		{half / 2, 4},
		{half, 4},
		{half + 1, 2},
		{half + half/2, 0},
		{math.MaxUint64, 16},
		{0, 4},
	} {
		if got := c.to(part.limit); !near(got, part.want) {
			t.Errorf("up to %v: %v, want %v", part.limit, got, part.want)
		}
	}
	if load.Hottest() != 4 || !near(load.Total(), 31.5) {
		t.Errorf("hottest %v, total %v", load.Hottest(), load.Total())
	}
}
