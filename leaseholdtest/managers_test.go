package leaseholdtest_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/leaseholdtest"
)

// A killed leader does not resign. Another manager leads after its
// TTL.
func TestKillLeader(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{Managers: 3}, func(t *testing.T, c *leaseholdtest.Cluster) {
		first := c.KillLeader()
		began := time.Now()
		if second := c.KillLeader(); second == first {
			t.Errorf("%s leads, but was killed", first)
		}
		if passed := time.Since(began); passed < time.Second {
			t.Errorf("another manager leads after %v, as if the first had resigned", passed)
		}
	})
}
