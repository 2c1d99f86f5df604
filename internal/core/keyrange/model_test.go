package keyrange_test

import (
	"math"
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"pgregory.net/rapid"
)

// The models are too simple to be wrong: a map is the list of all its writes, a set is the list of
// its ranges in insertion order. They are compared with the implementation at the cuts, the only
// keys where a value can change.

const lastKey leasehold.Key = math.MaxUint64

// failer is the common subset of testing.T, testing.F and rapid.T.
type failer interface {
	Helper()
	Errorf(format string, args ...any)
}

// holds is a reference implementation of Range.Contains.
func holds(r leasehold.Range, k leasehold.Key) bool {
	return k >= r.Start && (r.Limit == 0 || k < r.Limit)
}

// cuts returns, sorted, all keys where a range starts or ends.
func cuts(ranges ...leasehold.Range) []leasehold.Key {
	keys := []leasehold.Key{0}
	for _, r := range ranges {
		keys = append(keys, r.Start, r.Limit)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// segments returns the canonical segments of a function whose value changes only at cuts.
func segments[V comparable](cuts []leasehold.Key, at func(leasehold.Key) V) []keyrange.Segment[V] {
	var out []keyrange.Segment[V]
	for _, k := range cuts {
		n := len(out)
		if n > 0 && out[n-1].Value == at(k) {
			continue
		}
		if n > 0 {
			out[n-1].Range.Limit = k
		}
		out = append(out, keyrange.Segment[V]{Range: leasehold.Range{Start: k}, Value: at(k)})
	}
	return out
}

// A write is one call of Map.Set.
type write struct {
	r leasehold.Range
	v byte
}

// A history is the model of a map that was all 0 initially.
type history []write

func (h history) at(k leasehold.Key) byte {
	for _, w := range slices.Backward(h) {
		if holds(w.r, k) {
			return w.v
		}
	}
	return 0
}

func (h history) ranges() []leasehold.Range {
	var out []leasehold.Range
	for _, w := range h {
		out = append(out, w.r)
	}
	return out
}

func (h history) segments() []keyrange.Segment[byte] { return segments(cuts(h.ranges()...), h.at) }

// drawRange draws ranges that cluster at both ends and in the middle of the key space, so that they
// touch and overlap. About one in three is not valid.
func drawRange() *rapid.Generator[leasehold.Range] {
	edges := []leasehold.Key{0, 1, 2, 3, 1 << 32, 1<<63 - 1, 1 << 63, 1<<63 + 1, lastKey - 2, lastKey - 1, lastKey}
	key := rapid.OneOf(rapid.SampledFrom(edges), rapid.SampledFrom(edges),
		rapid.Map(rapid.Uint64(), func(v uint64) leasehold.Key { return leasehold.Key(v) }))
	return rapid.Custom(func(t *rapid.T) leasehold.Range {
		return leasehold.Range{Start: key.Draw(t, "start"), Limit: key.Draw(t, "limit")}
	})
}

func drawHistory() *rapid.Generator[history] {
	one := rapid.Custom(func(t *rapid.T) write {
		return write{drawRange().Draw(t, "range"), rapid.ByteRange(0, 3).Draw(t, "value")}
	})
	return rapid.Map(rapid.SliceOfN(one, 0, 20), func(ws []write) history { return ws })
}
