package keyrange_test

import (
	"math/rand/v2"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
)

// lease has about the size of a lease table's entry.
type lease struct {
	owner      leasehold.OwnerID
	generation leasehold.Generation
}

const (
	benchRanges = 64_000 // 1,000 owners with 64 virtual nodes each
	benchWidth  = 1 << 48
)

// benchMap returns a map of benchRanges ranges of equal width.
func benchMap() *keyrange.Map[lease] {
	var b keyrange.Builder[lease]
	b.Grow(benchRanges)
	for i := range leasehold.Key(benchRanges) {
		b.Append(i*benchWidth, lease{"server-00001", leasehold.Generation(i)})
	}
	return b.Map()
}

// benchKeys returns random keys, too many for a branch predictor.
func benchKeys() []leasehold.Key {
	random := rand.New(rand.NewPCG(1, 2))
	keys := make([]leasehold.Key, 1<<16)
	for i := range keys {
		keys[i] = leasehold.Key(random.Uint64N(benchRanges * benchWidth))
	}
	return keys
}

func BenchmarkMapAt(b *testing.B) {
	m, keys := benchMap(), benchKeys()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		m.At(keys[i%len(keys)])
		i++
	}
}

// A grant changes a value and no boundary.
func BenchmarkMapSetWhole(b *testing.B) {
	m, keys := benchMap(), benchKeys()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		r, v := m.At(keys[i%len(keys)])
		v.generation += benchRanges
		m.Set(r, v)
		i++
	}
}

// A split and the merge that undoes it move all following segments, twice.
func BenchmarkMapSetSplitMerge(b *testing.B) {
	m, keys := benchMap(), benchKeys()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		r, v := m.At(keys[i%len(keys)])
		middle := leasehold.Range{Start: r.Start + benchWidth/4, Limit: r.Start + benchWidth/2}
		m.Set(middle, lease{"server-00002", 1})
		m.Set(middle, v)
		i++
	}
}

func BenchmarkMapClone(b *testing.B) {
	m := benchMap()
	b.ReportAllocs()
	for b.Loop() {
		m.Clone()
	}
}

// Copy on write: each version of a table is a clone with one more change.
func BenchmarkMapCloneSet(b *testing.B) {
	m, keys := benchMap(), benchKeys()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		m = m.Clone()
		r, v := m.At(keys[i%len(keys)])
		v.generation += benchRanges
		m.Set(r, v)
		i++
	}
}

func BenchmarkDiff(b *testing.B) {
	m, o := benchMap(), benchMap()
	for i, k := range benchKeys()[:100] {
		r, _ := o.At(k)
		o.Set(r, lease{"server-00002", leasehold.Generation(i)})
	}
	b.ReportAllocs()
	for b.Loop() {
		for range keyrange.Diff(m, o) {
		}
	}
}

// benchSet returns a set of n ranges with gaps between.
func benchSet(n int, offset leasehold.Key) keyrange.Set {
	var ranges []leasehold.Range
	for i := range leasehold.Key(n) {
		start := i*benchWidth + offset
		ranges = append(ranges, leasehold.Range{Start: start, Limit: start + benchWidth/2})
	}
	return keyrange.NewSet(ranges...)
}

func BenchmarkSet(b *testing.B) {
	s, o := benchSet(benchRanges, 0), benchSet(benchRanges, benchWidth/4)
	b.Run("New", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			keyrange.NewSet(s...)
		}
	})
	b.Run("Union", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.Union(o)
		}
	})
	b.Run("Subtract", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.Subtract(o)
		}
	})
	b.Run("Covers", func(b *testing.B) {
		keys := benchKeys()
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			k := keys[i%len(keys)]
			s.Covers(leasehold.Range{Start: k, Limit: k + 1})
			i++
		}
	})
}
