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
			t.Errorf("a owns the key: %v, b: %v", owns(oa), owns(ob))
		}
	})
}

// Move waits for the whole range, not only for its ends.
func TestMoveOfMiddleRange(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		a, b := c.Node("a"), c.Node("b")
		a.Join(owner.Config{})
		b.Join(owner.Config{})
		c.Settle()
		const quarter = leasehold.Key(1 << 62)
		c.Move(leasehold.Range{Limit: quarter}, "b")
		c.Move(leasehold.Range{Start: 3 * quarter}, "b")
		c.Move(leasehold.Range{Start: quarter, Limit: 3 * quarter}, "a")
		a.Pause() // so that the move takes until its leases expire
		c.Move(leasehold.All, "b")
		for _, k := range []leasehold.Key{0, quarter - 1, quarter, 2 * quarter, 3*quarter - 1, 3 * quarter, leasehold.All.Last()} {
			if name, _ := c.Owner(k); name != "b" {
				t.Errorf("the owner of %v is %q", k, name)
			}
		}
	})
}
