package partition_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/partition"
	"pgregory.net/rapid"
)

func TestEven(t *testing.T) {
	for _, test := range []struct {
		members []partition.Member
		want    partition.Assignment
	}{
		{nil, partition.Assignment{{0, ""}}},
		{members("a"), partition.Assignment{{0, "a"}}},
		{members("a", "b"), partition.Assignment{{0, "a"}, {half, "b"}}},
		{members("a", "b", "c"), partition.Assignment{{0, "a"}, {0x5555555555555555, "b"}, {0xaaaaaaaaaaaaaaaa, "c"}}},
		{members("a", "b", "c", "d"), partition.Assignment{{0, "a"}, {quarter, "b"}, {half, "c"}, {threeQuarter, "d"}}},
	} {
		t.Run(fmt.Sprint(len(test.members)), func(t *testing.T) {
			got := assign(t, partition.Even{}, partition.Input{Members: test.members})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("slots (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEvenSharesAreEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := drawMembers(t, 30)
		shares := assign(t, partition.Even{}, partition.Input{Members: ms}).Shares()
		for _, m := range ms {
			if math.Abs(shares[m.Owner]*float64(len(ms))-1) > 1e-9 {
				t.Errorf("%q has %v of the keys, one of %d", m.Owner, shares[m.Owner], len(ms))
			}
		}
	})
}

func TestEvenKeepsLimit(t *testing.T) {
	in := partition.Input{Members: pool(3), Limits: partition.Limits{MaxRanges: 3}}
	assign(t, partition.Even{}, in)
	in.Limits.MaxRanges = 2
	_, err := partition.Even{}.Assign(in)
	wantError(t, err, leasehold.ErrLimit, `assign "even": 3 members need 3 ranges, and the limit is 2`)
}
