package partition

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
)

func TestWith(t *testing.T) {
	r := func(start, limit leasehold.Key) leasehold.Range { return leasehold.Range{Start: start, Limit: limit} }
	for _, c := range []struct {
		name  string
		from  Assignment
		r     leasehold.Range
		owner leasehold.OwnerID
		want  Assignment
	}{
		{"out of nothing", nil, r(5, 9), "a", Assignment{{0, ""}, {5, "a"}, {9, ""}}},
		{"everything", Assignment{{0, "a"}, {7, "b"}}, r(0, 0), "c", Assignment{{0, "c"}}},
		{"the middle", Assignment{{0, "a"}}, r(5, 9), "b", Assignment{{0, "a"}, {5, "b"}, {9, "a"}}},
		{"across slots", Assignment{{0, "a"}, {4, "b"}, {6, "c"}}, r(3, 8), "d", Assignment{{0, "a"}, {3, "d"}, {8, "c"}}},
		{"to whom it belongs", Assignment{{0, "a"}, {4, "b"}}, r(4, 6), "b", Assignment{{0, "a"}, {4, "b"}}},
		{"joined with a neighbour", Assignment{{0, "a"}, {4, "b"}}, r(4, 6), "a", Assignment{{0, "a"}, {6, "b"}}},
		{"the end", Assignment{{0, "a"}}, r(9, 0), "b", Assignment{{0, "a"}, {9, "b"}}},
	} {
		got := c.from.With(c.r, c.owner)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if err := got.checkCanonical(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
