package leaseholdtest_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/owner"
)

// TestLongLease: what takes as long as a lease lasts is waited for, however long that
// is.
func TestLongLease(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{Lease: 15 * time.Minute}, func(t *testing.T, c *leaseholdtest.Cluster) {
		a, b := c.Node("a"), c.Node("b")
		a.Join(owner.Config{})
		left := b.Join(owner.Config{})
		c.Settle()
		a.Expire()
		c.Settle()
		a.Kill()
		c.Settle()
		if !owns(left) {
			t.Error("settled, and the other has not got the key")
		}
	})
}
