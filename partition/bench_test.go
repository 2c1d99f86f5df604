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
