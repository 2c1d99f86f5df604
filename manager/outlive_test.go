package manager_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/admin"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A crash of the leader interrupts no owner of a namespace with the shortest lease without a warning, and does with a
// shorter one.
func TestLeaseWarning(t *testing.T) {
	t.Run("store", func(t *testing.T) {
		testLeaseWarning(t, 0.7, func(t *testing.T, test func(t *testing.T, c *cluster, leader string)) {
			inBubble(t, func(t *testing.T, c *cluster) {
				c.start("m1")
				c.start("m2")
				test(t, c, "m1")
			})
		})
	})
	t.Run("diskless", func(t *testing.T) { testLeaseWarning(t, 0.5, withoutDisk) })
}

func testLeaseWarning(t *testing.T, short float64, group func(*testing.T, func(t *testing.T, c *cluster, leader string))) {
	const phases = 12 // of renewals at the crash
	interruptions := func(shrink float64) (all int) {
		for phase := range phases {
			group(t, func(t *testing.T, c *cluster, leader string) {
				n := shortestWithoutWarning(admin.StatusOf(c.status(leader)))
				n.Lease, n.Renew = admin.Seconds(shrink*float64(n.Lease)), admin.Seconds(shrink*float64(n.Renew))
				if c.crashInterrupts(t, leader, n, time.Duration(n.Renew)*time.Duration(phase)/phases) {
					all++
				}
			})
		}
		return all
	}
	if n := interruptions(1); n > 0 {
		t.Errorf("%d of %d crashes interrupt owners without a warning", n, phases)
	}
	if n := interruptions(short); n == 0 {
		t.Errorf("no crash interrupts owners with %g of the shortest lease", short)
	}
}

// shortestWithoutWarning returns the shortest lease without a warning, renewed every quarter.
func shortestWithoutWarning(s admin.Status) admin.Namespace {
	n := admin.Namespace{Name: "pool"}
	for problem := "first"; problem != ""; problem, _ = s.LeaseWarning(n) {
		n.Lease += admin.Seconds(100 * time.Millisecond)
		n.Renew = n.Lease / 4
	}
	return n
}

// crashInterrupts crashes the leader a while after two owners have joined, and reports whether a key has no owner before
// the next leader has renewed all leases.
func (c *cluster) crashInterrupts(t *testing.T, leader string, n admin.Namespace, after time.Duration) (interrupted bool) {
	t.Helper()
	c.create(leader, &leaseholdv1.NamespaceConfig{Name: n.Name, Timing: &leaseholdv1.Timing{Lease: int64(n.Lease), Renew: int64(n.Renew)}})
	a, b := c.join("a"), c.join("b")
	eventually(t, time.Minute, "all keys are owned", func() bool { return complete(a, b) && len(a.Leases()) > 0 && len(b.Leases()) > 0 })
	time.Sleep(10*time.Second + after)
	c.crash(leader)
	for end := time.Now().Add(2 * time.Duration(n.Lease)); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		interrupted = interrupted || !complete(a, b)
	}
	return interrupted
}
