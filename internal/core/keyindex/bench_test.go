package keyindex_test

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyindex"
)

// benchShapes are distributions of range starts.
var benchShapes = []struct {
	name   string
	starts func(r *rand.Rand, n int) []leasehold.Key
}{
	{"hashed", hashed},
	{"dense", dense},
	{"clusters", clusters},
	{"nested", nested},
}

// keysNear returns keys of ranges drawn at random: small ranges are as frequent as large ones.
func keysNear(r *rand.Rand, starts []leasehold.Key) []leasehold.Key {
	keys := make([]leasehold.Key, 1<<14) // too many for a branch predictor
	for i := range keys {
		j := r.IntN(len(starts))
		width := -starts[j] // up to the end of the key space
		if j+1 < len(starts) {
			width = starts[j+1] - starts[j]
		}
		keys[i] = starts[j] + leasehold.Key(r.Uint64N(uint64(width)))
	}
	return keys
}

func BenchmarkFind(b *testing.B) {
	for _, shape := range benchShapes {
		for _, n := range []int{100, 64_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", shape.name, n), func(b *testing.B) {
				r := rand.New(rand.NewPCG(1, 2))
				starts := shape.starts(r, n)
				x, keys := keyindex.New(starts), keysNear(r, starts)
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					x.Find(keys[i%len(keys)])
					i++
				}
			})
		}
	}
}

// BenchmarkBinarySearch is the baseline.
func BenchmarkBinarySearch(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	starts := hashed(r, 64_000)
	keys := keysNear(r, starts)
	i := 0
	for b.Loop() {
		k := keys[i%len(keys)]
		sort.Search(len(starts), func(i int) bool { return starts[i] > k })
		i++
	}
}

func BenchmarkNew(b *testing.B) {
	for _, shape := range benchShapes {
		b.Run(shape.name+"/64000", func(b *testing.B) {
			starts := shape.starts(rand.New(rand.NewPCG(1, 2)), 64_000)
			b.ReportAllocs()
			for b.Loop() {
				keyindex.New(starts)
			}
		})
	}
}
