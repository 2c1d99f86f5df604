package partition_test

import (
	"fmt"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/partition"
)

// pool returns n members of weight 1, sorted by name.
func pool(n int) []partition.Member {
	members := make([]partition.Member, n)
	for i := range members {
		members[i] = partition.Member{Owner: leasehold.OwnerID(fmt.Sprintf("server-%05d", i)), Weight: 1}
	}
	return members
}

func BenchmarkConsistent(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		in := partition.Input{Members: pool(n)}
		b.Run(fmt.Sprintf("owners=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := (partition.Consistent{}).Assign(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAdaptive(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		benchmarkPolicy(b, partition.Adaptive{}, n, 4, "moves")
	}
}

func BenchmarkBalanced(b *testing.B) {
	for _, n := range []int{10, 250, 1000, 10_000} {
		benchmarkPolicy(b, partition.Balanced{}, n, 16, "begins", "joins", "leaves", "rests", "moves")
	}
}

// benchmarkPolicy measures decisions among n owners whose ranges have so many
// cells each.
func benchmarkPolicy(b *testing.B, p partition.Policy, n, cells int, cases ...string) {
	begin := partition.Input{Members: pool(n), Budget: 1}
	current, err := p.Assign(begin)
	if err != nil {
		b.Fatal(err)
	}
	in := map[string]partition.Input{
		"begins": begin,
		"joins":  {Members: pool(n + 1), Current: current, Loads: cellsOf(current, cells)},
		"leaves": {Members: pool(n - 1), Current: current, Loads: cellsOf(current, cells)},
		"rests":  {Members: pool(n), Current: current, Loads: cellsOf(current, cells), Budget: 1},
		"moves":  {Members: pool(n), Current: current, Loads: waves(current, cells), Budget: 1},
	}
	for _, name := range cases {
		b.Run(fmt.Sprintf("%s/owners=%d", name, n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Assign(in[name]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkValidate(b *testing.B) {
	in := partition.Input{Members: pool(1000)}
	a, err := partition.Consistent{}.Assign(in)
	if err != nil {
		b.Fatal(err)
	}
	b.Run(fmt.Sprintf("slots=%d", len(a)), func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := partition.Validate(in, a); err != nil {
				b.Fatal(err)
			}
		}
	})
}
