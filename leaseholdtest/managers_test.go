package leaseholdtest_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/leaseholdtest"
)

// TestKillLeader: a leader that was killed hands nothing over. Another leads when its
// time has run out.
func TestKillLeader(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{Managers: 3}, func(t *testing.T, c *leaseholdtest.Cluster) {
		first := c.KillLeader()
		began := time.Now()
		if second := c.KillLeader(); second == first {
			t.Errorf("%s leads, and is dead", first)
		}
		if passed := time.Since(began); passed < time.Second {
			t.Errorf("another led after %v, as if the first had resigned", passed)
		}
	})
}
