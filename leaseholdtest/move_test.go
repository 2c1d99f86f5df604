package leaseholdtest_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/owner"
)

func TestMove(t *testing.T) {
	two(t, func(t *testing.T, c *leaseholdtest.Cluster, _, b *leaseholdtest.Node, oa, ob *owner.Owner) {
		lease, _ := oa.Check(key)
		c.Move(lease.Range, b.Name())
		c.Advance(time.Second)
		if owns(oa) || !owns(ob) {
			t.Errorf("the first owns it: %v, the second: %v", owns(oa), owns(ob))
		}
	})
}

// TestMoveOfTheMiddle: a range is there when all of it is, and not when its ends are.
func TestMoveOfTheMiddle(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		a, b := c.Node("a"), c.Node("b")
		a.Join(owner.Config{})
		b.Join(owner.Config{})
		c.Settle()
		const quarter = leasehold.Key(1 << 62)
		c.Move(leasehold.Range{Limit: quarter}, "b")
		c.Move(leasehold.Range{Start: 3 * quarter}, "b")
		c.Move(leasehold.Range{Start: quarter, Limit: 3 * quarter}, "a")
		a.Pause() // so that the move takes as long as its leases last
		c.Move(leasehold.All, "b")
		for _, k := range []leasehold.Key{0, quarter - 1, quarter, 2 * quarter, 3*quarter - 1, 3 * quarter, leasehold.All.Last()} {
			if name, _ := c.Owner(k); name != "b" {
				t.Errorf("%v is with %q", k, name)
			}
		}
	})
}
