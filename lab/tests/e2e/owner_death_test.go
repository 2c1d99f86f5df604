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

// lostLease is the lease time where leases must run out.
const lostLease = 3 * time.Second

// regrant is the longest that keys of a dead owner stay without one.
func regrant(lease time.Duration) time.Duration {
	return time.Duration(float64(lease) * drift)
}

// TestOwnerKilled: the keys of an owner that dies without a word go to the
// others when its leases have run out. Each is reported as lost, once, and the
// others' leases stay as they are.
func TestOwnerKilled(t *testing.T) {
	t.Parallel()
	const ns = "killed"
	g := startLone(t)
	g.createNamespace(t, ns, lostLease)
	ann, bob := g.join(t, ns, "ann"), g.join(t, ns, "bob")
	victim := g.joinProcess(t, ns, "victim")
	g.settled(t, ns, "ann", "bob", "victim")
	g.steady(t, ns, ann, bob)
	exclusive(t, ann, bob)
	calls := g.open(t, ns, patience)
	had := g.leasesOf(t, ns, "victim")

	victim.kill()
	began := time.Now()
	within(t, regrant(lostLease)+slack, "the others have its keys", func() error { return covered(calls, had, "victim") })
	t.Logf("its keys had a new owner %v after it died; the lease is %v, times drift %v", time.Since(began), lostLease, regrant(lostLease))
	g.settled(t, ns, "ann", "bob")
	lostOnce(t, calls, had, "victim", leasehold.CauseExpired)
	newest := slices.MaxFunc(had, func(a, b leasehold.Lease) int { return cmp.Compare(a.Generation, b.Generation) })
	for _, l := range had {
		if p, _ := calls.At(l.Range.Start); p.Generation <= newest.Generation {
			t.Errorf("%v was granted again under generation %d", l, p.Generation)
		}
	}
}

// TestOwnerRestarted: one that comes back under its name, on the computer on
// which it died, need not wait for what it had: it sees that the process before
// it is gone.
func TestOwnerRestarted(t *testing.T) {
	t.Parallel()
	const ns = "restarted"
	const lease = time.Minute // waiting it out would fail the test
	g := startLone(t)
	g.createNamespace(t, ns, lease)
	ann := g.join(t, ns, "ann")
	victim := g.joinProcess(t, ns, "victim")
	g.settled(t, ns, "ann", "victim")
	g.steady(t, ns, ann)
	calls := g.open(t, ns, patience)
	had := g.leasesOf(t, ns, "victim")

	victim.kill()
	began := time.Now()
	again := g.joinProcess(t, ns, "victim")
	within(t, lease/2, "it has its keys again", func() error {
		return sameRanges(had, again.ask(t, askLeases).Leases)
	})
	t.Logf("it had its keys again %v after it died; the lease is %v", time.Since(began), lease)
	for i, l := range again.ask(t, askLeases).Leases {
		if l.Generation <= had[i].Generation {
			t.Errorf("%v is no new grant: it was %v before", l, had[i])
		}
	}
	eventually(t, "the lookup hears of it", func() error { return covered(calls, had, "") })
	lostOnce(t, calls, had, "victim", leasehold.CauseRestarted)
}

// covered reports which of the leases' ranges are, as a lookup sees it, nobody's
// or still of the owner before, or under the lease before.
func covered(c *caller, had []leasehold.Lease, before leasehold.OwnerID) error {
	for _, l := range had {
		for _, key := range []leasehold.Key{l.Range.Start, l.Range.Last()} {
			if p, ok := c.At(key); !ok || p.Owner == before || p.Generation == l.Generation {
				return fmt.Errorf("key %v is %q's under generation %d", key, p.Owner, p.Generation)
			}
		}
	}
	return nil
}

// lostOnce wants a lookup to have reported every lease as lost, each exactly
// once, and nothing else.
func lostOnce(t *testing.T, c *caller, had []leasehold.Lease, by leasehold.OwnerID, why leasehold.Cause) {
	t.Helper()
	var told []leasehold.Lease
	eventually(t, "as many losses as leases", func() error {
		if n := len(c.told()); n < len(had) {
			return fmt.Errorf("%d losses for %d leases", n, len(had))
		}
		return nil
	})
	for _, l := range c.told() {
		if l.Owner != by || l.Cause != why {
			t.Errorf("%v: want it by %s, and %v", l, by, why)
		}
		told = append(told, leasehold.Lease{Range: l.Range, Generation: l.Generation})
	}
	slices.SortFunc(told, func(a, b leasehold.Lease) int { return cmp.Compare(a.Range.Start, b.Range.Start) })
	if err := sameLeases(had, told); err != nil {
		t.Errorf("the losses are not the leases: %v", err)
	}
}

// sameRanges says how the ranges of leases differ.
func sameRanges(want, have []leasehold.Lease) error {
	if slices.EqualFunc(want, have, func(a, b leasehold.Lease) bool { return a.Range == b.Range }) {
		return nil
	}
	return fmt.Errorf("want the ranges of %v, have %v", want, have)
}
