package lookup

import (
	"fmt"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// mustBuild returns a table of n ranges with pseudo-random starts.
func mustBuild(n int, entry func(i int) table.Entry) *table.Table {
	var b keyrange.Builder[table.Entry]
	width := ^uint64(0)/uint64(n) + 1
	newest := leasehold.Generation(0)
	for i := range n {
		start := uint64(i) * width
		if i > 0 {
			start += uint64(leasehold.KeyOf(fmt.Sprint(i))) % width / 2
		}
		e := entry(i)
		newest = max(newest, e.Generation)
		b.Append(leasehold.Key(start), e)
	}
	t, err := table.Restore(0, newest, b.Map())
	if err != nil {
		panic(err)
	}
	return t
}

func BenchmarkFind(b *testing.B) {
	for _, n := range []int{100, 64_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l := lookupAt(tableOf(n, min(n, 1000), 1))
			b.ReportAllocs()
			key := leasehold.Key(0)
			for b.Loop() {
				key += 0x9e3779b97f4a7c15 // golden ratio: uniformly distributed keys
				if _, ok := l.Find(key); !ok {
					b.Fatal("not found")
				}
			}
		})
	}
}

// BenchmarkPublish measures the cost of a table change.
func BenchmarkPublish(b *testing.B) {
	for _, n := range []int{100, 64_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			t := tableOf(n, min(n, 1000), 1)
			for b.Loop() {
				newSnapshot(t)
			}
		})
	}
}
