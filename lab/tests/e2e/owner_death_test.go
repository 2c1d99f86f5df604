//go:build unix

package e2e

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// lostLease is the lease time of tests in which leases expire.
const lostLease = 3 * time.Second

// regrant is the longest time until keys of a dead owner are granted again.
func regrant(lease time.Duration) time.Duration {
	return time.Duration(float64(lease) * drift)
}

// TestOwnerKilled: the keys of a killed owner are granted to the others when its leases
// expire. Each loss is reported once, and the others keep their leases.
func TestOwnerKilled(t *testing.T) {
	t.Parallel()
	const ns = "killed"
	g := startLone(t)
	g.createNamespace(t, ns, lostLease)
	ann, bob := g.join(t, ns, "ann"), g.join(t, ns, "bob")
	victim := g.joinProcess(t, ns, "victim")
	g.waitForAssignment(t, ns, "ann", "bob", "victim")
	g.steady(t, ns, ann, bob)
	exclusive(t, ann, bob)
	calls := g.open(t, ns, eventTimeout)
	had := g.leasesOf(t, ns, "victim")

	victim.kill()
	began := time.Now()
	within(t, regrant(lostLease)+slack, "the others own its keys", func() error { return covered(calls, had, "victim") })
	t.Logf("its keys had a new owner %v after it was killed; the lease is %v, times drift %v", time.Since(began), lostLease, regrant(lostLease))
	g.waitForAssignment(t, ns, "ann", "bob")
	lostOnce(t, calls, had, "victim", leasehold.CauseExpired)
	newest := slices.MaxFunc(had, func(a, b leasehold.Lease) int { return cmp.Compare(a.Generation, b.Generation) })
	for _, l := range had {
		if p, _ := calls.At(l.Range.Start); p.Generation <= newest.Generation {
			t.Errorf("%v was granted again with generation %d", l, p.Generation)
		}
	}
}

// TestOwnerRestarted: an owner that restarts under its name on the same machine is granted
// its keys at once: it proves that its previous process has ended.
func TestOwnerRestarted(t *testing.T) {
	t.Parallel()
	const ns = "restarted"
	const lease = time.Minute // waiting until it expires would fail the test
	g := startLone(t)
	g.createNamespace(t, ns, lease)
	ann := g.join(t, ns, "ann")
	victim := g.joinProcess(t, ns, "victim")
	g.waitForAssignment(t, ns, "ann", "victim")
	g.steady(t, ns, ann)
	calls := g.open(t, ns, eventTimeout)
	had := g.leasesOf(t, ns, "victim")

	victim.kill()
	began := time.Now()
	again := g.joinProcess(t, ns, "victim")
	within(t, lease/2, "the owner has its keys again", func() error {
		return sameRanges(had, again.query(t, askLeases).Leases)
	})
	t.Logf("the owner had its keys again %v after it was killed; the lease is %v", time.Since(began), lease)
	for i, l := range again.query(t, askLeases).Leases {
		if l.Generation <= had[i].Generation {
			t.Errorf("%v is not a new grant: %v before", l, had[i])
		}
	}
	eventually(t, "the lookup has the new leases", func() error { return covered(calls, had, "") })
	lostOnce(t, calls, had, "victim", leasehold.CauseRestarted)
}

// covered returns an error unless every range of the leases has a new owner and a new
// generation in the lookup's table.
func covered(c *caller, had []leasehold.Lease, before leasehold.OwnerID) error {
	for _, l := range had {
		for _, key := range []leasehold.Key{l.Range.Start, l.Range.Last()} {
			if p, ok := c.At(key); !ok || p.Owner == before || p.Generation == l.Generation {
				return fmt.Errorf("key %v has owner %q, generation %d", key, p.Owner, p.Generation)
			}
		}
	}
	return nil
}

// lostOnce requires that a lookup reported exactly these leases as lost, each once.
func lostOnce(t *testing.T, c *caller, had []leasehold.Lease, by leasehold.OwnerID, why leasehold.Cause) {
	t.Helper()
	var losses []leasehold.Lease
	eventually(t, "as many losses as leases", func() error {
		if n := len(c.reportedLosses()); n < len(had) {
			return fmt.Errorf("%d losses for %d leases", n, len(had))
		}
		return nil
	})
	for _, l := range c.reportedLosses() {
		if l.Owner != by || l.Cause != why {
			t.Errorf("%v: want owner %s, cause %v", l, by, why)
		}
		losses = append(losses, leasehold.Lease{Range: l.Range, Generation: l.Generation})
	}
	slices.SortFunc(losses, func(a, b leasehold.Lease) int { return cmp.Compare(a.Range.Start, b.Range.Start) })
	if err := sameLeases(had, losses); err != nil {
		t.Errorf("the losses differ from the leases: %v", err)
	}
}

// sameRanges returns an error if the ranges of leases differ.
func sameRanges(want, have []leasehold.Lease) error {
	if slices.EqualFunc(want, have, func(a, b leasehold.Lease) bool { return a.Range == b.Range }) {
		return nil
	}
	return fmt.Errorf("want the ranges of %v, have %v", want, have)
}
