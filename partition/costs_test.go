package partition

import (
	"math"
	"slices"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"pgregory.net/rapid"
)

// For any loads, all keys together cost 1, and the cost of a span is the sum of its two
// halves.
func TestCostsAddUp(t *testing.T) {
	keys := rapid.Custom(func(t *rapid.T) []leasehold.Key {
		key := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 8), rapid.Uint64Range(math.MaxUint64-8, math.MaxUint64))
		var out []leasehold.Key
		for _, k := range rapid.SliceOfNDistinct(key, 0, 12, rapid.ID).Draw(t, "keys") {
			out = append(out, leasehold.Key(k))
		}
		slices.Sort(out)
		return out
	})
	rate := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, 9), rapid.Just(float64(MaxRate)))
	rapid.Check(t, func(t *rapid.T) {
		var l Loads
		bounds := keys.Draw(t, "cells")
		for i := 1; i < len(bounds); i += rapid.IntRange(1, 2).Draw(t, "step") {
			l.Cells = append(l.Cells, Cell{leasehold.Range{Start: bounds[i-1], Limit: bounds[i]}, rate.Draw(t, "rate")})
		}
		for _, k := range keys.Draw(t, "hot keys") {
			l.Hot = append(l.Hot, HotKey{k, rate.Draw(t, "hot rate")})
		}
		if err := l.Validate(); err != nil {
			t.Fatal(err)
		}
		c := newCosts(l)
		measure := func(s span) float64 {
			w := c.seek(s.start)
			return measureAtoms(w.atoms(nil, s)).cost
		}
		cut := leasehold.Key(rapid.Uint64Range(1, math.MaxUint64).Draw(t, "cut"))
		whole, parts := measure(spanOf(leasehold.All)), measure(span{0, cut - 1})+measure(span{cut, math.MaxUint64})
		if math.Abs(whole-1) > 1e-9 || math.Abs(parts-1) > 1e-9 {
			t.Errorf("all keys cost %v; split at %v, the sum is %v", whole, cut, parts)
		}
	})
}
