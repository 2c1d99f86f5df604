package manager_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/owner"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

func pool() *leaseholdv1.NamespaceConfig { return &leaseholdv1.NamespaceConfig{Name: "pool"} }

// One manager, two owners, one lookup: every key has an owner, the lookup finds it, and its keys move when an owner
// leaves.
func TestOneManager(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("m1")
		c.create("m1", pool())
		a, b := c.join("a"), c.join("b")
		l := c.open()
		eventually(t, 5*time.Second, "all keys are owned", func() bool { return complete(a, b) && len(a.Leases()) > 0 && len(b.Leases()) > 0 })
		synctest.Wait()
		for _, word := range []string{"x", "y", "z", "alice", "bob"} {
			key := leasehold.KeyOf(word)
			at, ok := l.Find(key)
			_, byA := a.Check(key)
			_, byB := b.Check(key)
			if !ok || byA == byB || byA != (at == "a:80") || byB != (at == "b:80") {
				t.Errorf("%s: the lookup finds %q, a holds it: %v, b holds it: %v", word, at, byA, byB)
			}
		}
		c.leave(b)
		eventually(t, 5*time.Second, "a has everything", func() bool { return complete(a) })
		synctest.Wait()
		if at, ok := l.Find(leasehold.KeyOf("x")); !ok || at != "a:80" {
			t.Errorf("after b has left, x is at %q", at)
		}
	})
}

// Waves send updates on streams that carry replies at the same time. No update is dropped: a lookup
// would detect that only at its next request or update.
func TestBroadcastInWavesReachesAllLookups(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.waves = true
		c.start("m1")
		c.create("m1", pool())
		var lookups []*lookup.Lookup
		for range 20 {
			lookups = append(lookups, c.open())
		}
		var owners []*owner.Owner
		for i := range 8 {
			owners = append(owners, c.join(fmt.Sprintf("o%d", i)))
			eventually(t, 30*time.Second, "all keys are owned, by all", func() bool {
				return complete(owners...) && len(owners[i].Leases()) > 0
			})
			newest := c.status("m1").GetNamespaces()[0].GetLsn()
			eventually(t, 500*time.Millisecond, "all lookups have the table", func() bool {
				return !slices.ContainsFunc(lookups, func(l *lookup.Lookup) bool { return uint64(l.LSN()) < newest })
			})
		}
	})
}

// The leader fails: no lease is lost, and generations do not change (Centrifuge 2.1.1).
func TestFailoverKeepsLeases(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("m1")
		c.start("m2")
		c.create("m1", pool())
		a, b := c.join("a"), c.join("b")
		l := c.open()
		eventually(t, 5*time.Second, "both have keys, and the lookup has the table", func() bool {
			return complete(a, b) && len(a.Leases()) > 0 && len(b.Leases()) > 0 && follows(l, a, b)
		})
		before := [][]leasehold.Lease{a.Leases(), b.Leases()}
		lsn := l.LSN()

		c.crash("m1")
		begun, held := time.Now(), true
		eventually(t, 10*time.Second, "m2 leads and both owners have sent a request to it", func() bool {
			held = held && complete(a, b)
			return c.status("m2").GetLeader() == addr("m2") && members(t, c, "m2") == 2
		})
		// TTL is 2 s, and a standby waits for TTL x drift from the last renewal.
		if took := time.Since(begun); took > 3*time.Second {
			t.Errorf("renewals resumed after %v, want at most 1.5 x TTL", took)
		}
		time.Sleep(15 * time.Second) // longer than any lease from before
		if after := [][]leasehold.Lease{a.Leases(), b.Leases()}; !held || cmp.Diff(before, after) != "" {
			t.Errorf("leases were lost (%v) or have changed:\n%s", !held, cmp.Diff(before, after))
		}
		if l.LSN() != lsn {
			t.Errorf("the table has changed from %d to %d", lsn, l.LSN())
		}
	})
}

// The status has the load of an owner per second.
func TestLoad(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("m1")
		c.create("m1", pool())
		a := c.join("a")
		for range 400 { // 40 s at 100 in a second
			for key := range leasehold.Key(10) {
				a.Check(key << 60)
			}
			time.Sleep(100 * time.Millisecond)
		}
		answer, err := c.admin("m1").ListOwners(t.Context(), &leaseholdv1.ListOwnersRequest{Version: wire.Version, Namespace: "pool"})
		if err != nil {
			t.Fatal(err)
		}
		if load := answer.GetOwners()[0].GetLoad(); load < 90 || load > 110 {
			t.Errorf("its load is %v, want about 100", load)
		}
	})
}

// members returns the number of members in a manager's status.
func members(t *testing.T, c *cluster, name string) int {
	t.Helper()
	answer, err := c.admin(name).ListOwners(t.Context(), &leaseholdv1.ListOwnersRequest{Version: wire.Version, Namespace: "pool"})
	if err != nil {
		return 0
	}
	n := 0
	for _, o := range answer.GetOwners() {
		if o.GetState() == leaseholdv1.OwnerState_OWNER_STATE_MEMBER {
			n++
		}
	}
	return n
}

// A closed manager hands over leadership at once, before its leadership expires.
func TestHandOver(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("m1")
		c.start("m2")
		c.create("m1", pool())
		begun := time.Now()
		c.stop("m1")
		eventually(t, 5*time.Second, "m2 leads", func() bool { return c.status("m2").GetLeader() == addr("m2") })
		if took := time.Since(begun); took > 500*time.Millisecond {
			t.Errorf("the handover took %v", took)
		}
	})
}

// A standby serves lookups from its copy of the table, with the leader's entries, and forwards admin
// requests to the leader.
func TestStandby(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("m1")
		c.start("m2")
		c.create("m2", pool()) // through the standby
		a := c.join("a")
		l := c.open(addr("m2"))
		eventually(t, 5*time.Second, "the lookup finds a", func() bool {
			at, ok := l.Find(0)
			return ok && at == "a:80" && complete(a)
		})
		if n := c.status("m2").GetNamespaces()[0].GetLookups(); n != 1 {
			t.Errorf("m2 serves %d lookups, want 1", n)
		}
		b := c.join("b")
		eventually(t, time.Second, "the lookup finds b at once", func() bool {
			for _, lease := range b.Leases() {
				if at, _ := l.Find(lease.Range.Start); at == "b:80" {
					return true
				}
			}
			return false
		})
		leader, standby := c.status("m1"), c.status("m2")
		if leader.GetLeader() != standby.GetLeader() || leader.GetTerm() != standby.GetTerm() {
			t.Errorf("leader by m1: %s, by m2: %s", leader.GetLeader(), standby.GetLeader())
		}
	})
}

// Lookups do not load the leader: after a while they follow standbys, and receive changes as before.
func TestLookupsFollowStandbys(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		names := []string{"m1", "m2", "m3"}
		for _, name := range names {
			c.start(name)
		}
		c.create("m1", pool())
		c.join("a")
		var all []*lookup.Lookup
		for range 9 {
			all = append(all, c.open(addr("m1"), addr("m2"), addr("m3")))
		}
		time.Sleep(5 * time.Minute)
		leader, stand := c.status("m1").GetLeader(), uint32(0)
		for _, name := range names {
			switch n := c.status(name).GetNamespaces()[0].GetLookups(); {
			case addr(name) != leader:
				stand += n
			case n == 0 || n > 2: // the standbys with lookups
				t.Errorf("the leader is followed by %d, want the standbys, which are 2", n)
			}
		}
		if stand != 9 {
			t.Errorf("%d lookups follow the standbys, want all 9", stand)
		}
		b := c.join("b")
		eventually(t, time.Second, "all find b at once", func() bool {
			for _, l := range all {
				for _, lease := range b.Leases() {
					if at, _ := l.Find(lease.Range.Start); at != "b:80" {
						return false
					}
				}
			}
			return len(b.Leases()) > 0
		})
	})
}

// The error for a missing namespace has the command that creates it.
func TestNoSuchNamespace(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("m1")
		c.start("m2")
		const want = `leasehold namespace create pool`
		_, err := owner.Join(t.Context(), c.ownerConfig("a"))
		if !errors.Is(err, leasehold.ErrNotFound) || !contains(err.Error(), want) {
			t.Errorf("join: %v", err)
		}
		_, err = c.admin("m2").ListOwners(t.Context(), &leaseholdv1.ListOwnersRequest{Version: wire.Version, Namespace: "pool"})
		if err = wire.ToError(err); !errors.Is(err, leasehold.ErrNotFound) || !contains(err.Error(), want) {
			t.Errorf("admin request: %v", err)
		}
	})
}
