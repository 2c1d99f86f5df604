package keyindex_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyindex"
	"pgregory.net/rapid"
)

const lastKey leasehold.Key = math.MaxUint64

// check compares the index with a binary search: at every start, right before it, in the middle of
// every range, at both ends of the key space, and at keys. It also checks that no search is linear.
func check(t interface {
	Helper()
	Errorf(format string, args ...any)
}, starts []leasehold.Key, keys ...leasehold.Key,
) {
	t.Helper()
	x := keyindex.New(starts)
	if walk := keyindex.LongestWalk(x); walk > keyindex.Few {
		t.Errorf("%d starts: a linear search over %d of them", len(starts), walk)
	}
	keys = append(keys, 0, lastKey-1, lastKey)
	for i, start := range starts {
		end := lastKey
		if i+1 < len(starts) {
			end = starts[i+1] - 1
		}
		keys = append(keys, start, start+(end-start)/2, end)
	}
	for _, k := range keys {
		want := sort.Search(len(starts), func(i int) bool { return starts[i] > k }) - 1
		if got := x.Find(k); got != want {
			t.Errorf("%d starts: Find(%v) = %d, want %d", len(starts), k, got, want)
			return // report one failure, not up to three for each range
		}
	}
}

func TestFindEdges(t *testing.T) {
	for name, starts := range map[string][]leasehold.Key{
		"everything":           {0},
		"first key alone":      {0, 1},
		"last key alone":       {0, lastKey},
		"last two keys alone":  {0, lastKey - 1, lastKey},
		"halves":               {0, 1 << 63},
		"first and last":       {0, 1, lastKey - 1, lastKey},
		"dense at the start":   sorted(runOf(0, 300)),
		"dense at the end":     sorted(runOf(lastKey-299, 300)),
		"both ends":            sorted(append(runOf(0, 300), runOf(lastKey-299, 300)...)),
		"cluster in a cluster": sorted(append(runOf(1<<40, 300), 1<<41, 1<<42, 1<<50, 1<<62)),
	} {
		t.Run(name, func(t *testing.T) { check(t, starts) })
	}
}

// runOf returns n consecutive keys.
func runOf(first leasehold.Key, n int) []leasehold.Key {
	var keys []leasehold.Key
	for i := range n {
		keys = append(keys, first+leasehold.Key(i))
	}
	return keys
}

// TestFindPowers: starts at all powers of two are the most skewed distribution.
func TestFindPowers(t *testing.T) {
	var powers, complements []leasehold.Key
	for i := range 64 {
		powers = append(powers, 1<<i, 1<<i+1)
		complements = append(complements, ^leasehold.Key(1<<i))
	}
	check(t, sorted(powers))
	check(t, sorted(complements))
	check(t, sorted(append(powers, complements...)))
}

func TestFindShapes(t *testing.T) {
	for _, shape := range benchShapes {
		t.Run(shape.name, func(t *testing.T) {
			for _, n := range []int{2, 3, 10, 127, 128, 129, 1000, 64_000} {
				r := rand.New(rand.NewPCG(1, uint64(n)))
				starts := shape.starts(r, n)
				check(t, starts, keysNear(r, starts)...)
			}
		})
	}
}

// drawStarts draws starts in a few runs with random distance and density: even, clustered, and
// clusters within clusters.
func drawStarts(t *rapid.T) []leasehold.Key {
	var keys []leasehold.Key
	for range rapid.IntRange(0, 6).Draw(t, "runs") {
		at := leasehold.Key(rapid.Uint64().Draw(t, "at") >> rapid.IntRange(0, 63).Draw(t, "bits"))
		step := leasehold.Key(1) << rapid.IntRange(0, 63).Draw(t, "step")
		for range rapid.IntRange(1, 40).Draw(t, "length") {
			keys = append(keys, at)
			at += step // may wrap around
		}
	}
	return sorted(keys)
}

func TestFindAgainstSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.Map(rapid.Uint64(), func(k uint64) leasehold.Key { return leasehold.Key(k) }), 0, 20)
		check(t, drawStarts(t), keys.Draw(t, "keys")...)
	})
}

func FuzzFind(f *testing.F) {
	for _, seed := range [][]leasehold.Key{{}, {1}, {lastKey}, {1 << 63, 1<<63 + 1}, runOf(1<<40, 20)} {
		var data []byte
		for _, k := range seed {
			data = binary.BigEndian.AppendUint64(data, uint64(k))
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var keys []leasehold.Key
		for ; len(data) >= 8 && len(keys) < 1000; data = data[8:] {
			keys = append(keys, leasehold.Key(binary.BigEndian.Uint64(data)))
		}
		check(t, sorted(keys))
	})
}

func TestFindDoesNotAllocate(t *testing.T) {
	for _, shape := range benchShapes {
		r := rand.New(rand.NewPCG(1, 2))
		starts := shape.starts(r, 1000)
		x, keys := keyindex.New(starts), keysNear(r, starts)
		i := 0
		if got := testing.AllocsPerRun(100, func() { x.Find(keys[i]); i++ }); got != 0 {
			t.Errorf("%s: %v allocations", shape.name, got)
		}
	}
}
