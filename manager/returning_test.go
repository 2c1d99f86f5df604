package manager_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// Twenty owners return after an outage at the same time, and every fifth returns later. All leases resume: an owner
// has one lease to return after the first one, and its next request may take half of that.
func TestOwnersReturnTogether(t *testing.T) {
	for _, crash := range []bool{false, true} {
		for _, late := range []time.Duration{0, 2 * time.Second, 5 * time.Second} {
			if testing.Short() && late != 2*time.Second {
				continue
			}
			t.Run(fmt.Sprintf("managers crash %t, some %v late", crash, late), func(t *testing.T) {
				inBubble(t, func(t *testing.T, c *cluster) { ownersReturn(t, c, crash, late) })
			})
		}
	}
}

func ownersReturn(t *testing.T, c *cluster, crash bool, late time.Duration) {
	c.start("m1")
	c.create("m1", pool())
	var cut, cutLate atomic.Bool
	var revoked atomic.Int64
	var all []*owner.Owner
	for i := range 20 {
		gate := &cut
		if i%5 == 0 {
			gate = &cutLate
		}
		all = append(all, c.joinBehind(gate, fmt.Sprintf("o%d", i), func(cfg *owner.Config) {
			cfg.OnRevoke = func(l []leasehold.Lease, _ leasehold.Cause) { revoked.Add(int64(len(l))) }
		}))
	}
	empty := func(o *owner.Owner) bool { return len(o.Leases()) == 0 }
	eventually(t, 5*time.Minute, "all have leases", func() bool { return complete(all...) && !slices.ContainsFunc(all, empty) })
	time.Sleep(time.Minute)
	held := heldBy(all...)
	revoked.Store(0)
	cut.Store(true)
	cutLate.Store(true)
	if crash {
		c.crash("m1")
	}
	time.Sleep(5 * time.Minute)
	if slices.ContainsFunc(all, func(o *owner.Owner) bool { return len(o.SuspendedLeases()) == 0 }) {
		t.Error("an owner has no suspended leases")
	}
	if crash {
		c.start("m1")
	}
	cut.Store(false)
	time.Sleep(late)
	cutLate.Store(false)
	eventually(t, 30*time.Second, "all keys are owned", func() bool { return complete(all...) })
	time.Sleep(time.Minute)
	if ended := endedSince(held, all...); len(ended) > 0 || revoked.Load() > 0 {
		t.Errorf("%v: these leases ended; OnRevoke was called for %d", ended, revoked.Load())
	}
}

// An owner is partitioned, and its range is granted to another owner. Then no manager, the leader or all managers fail.
// When the first owner returns its lease ends, and the other owner keeps the range and its generation.
func TestReplacedWhileSuspended(t *testing.T) {
	for _, failed := range []string{"none", "the leader", "all"} {
		t.Run("stored, fails: "+failed, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				for _, name := range group(3) {
					c.start(name)
				}
				replacedWhileSuspended(t, c, c.leads(time.Minute), failed)
			})
		})
		if failed == "all" {
			continue // a diskless group loses the table if all managers fail at once
		}
		t.Run("diskless, fails: "+failed, func(t *testing.T) {
			withoutDisk(t, func(t *testing.T, c *cluster, leader string) { replacedWhileSuspended(t, c, leader, failed) })
		})
	}
}

func replacedWhileSuspended(t *testing.T, c *cluster, leader, failed string) {
	c.create(leader, pool())
	var cut, ended, kept, resumed atomic.Bool
	var other atomic.Pointer[owner.Owner]
	var key atomic.Uint64
	var taken atomic.Uint64
	a := c.joinBehind(&cut, "a", func(cfg *owner.Config) {
		cfg.OnResume = func([]leasehold.Lease) { resumed.Store(true) }
		cfg.OnRevoke = func([]leasehold.Lease, leasehold.Cause) {
			if b := other.Load(); b != nil && !ended.Swap(true) {
				l, ok := b.Check(leasehold.Key(key.Load()))
				kept.Store(ok && uint64(l.Generation) == taken.Load())
			}
		}
	})
	b := c.join("b")
	eventually(t, time.Minute, "both have leases", func() bool { return complete(a, b) && len(a.Leases()) > 0 && len(b.Leases()) > 0 })
	time.Sleep(20 * time.Second)
	lease, _ := a.Check(a.Leases()[0].Range.Start)
	cut.Store(true)
	eventually(t, time.Minute, "b has all keys", func() bool { return complete(b) })
	grant, _ := b.Check(lease.Range.Start)
	if !a.Suspended(lease.Range.Start) || grant.Generation <= lease.Generation {
		t.Fatalf("a has %v suspended, and b has %v", a.SuspendedLeases(), grant)
	}
	key.Store(uint64(lease.Range.Start))
	taken.Store(uint64(grant.Generation))
	other.Store(b)
	crashed := []string{}
	switch failed {
	case "the leader":
		crashed = append(crashed, c.leads(time.Second))
	case "all":
		crashed = group(3)
	}
	for _, name := range crashed {
		c.crash(name)
	}
	if failed == "all" {
		time.Sleep(20 * time.Second)
		for _, name := range crashed {
			c.start(name)
		}
	}
	cut.Store(false)
	eventually(t, time.Minute, "the lease of a has ended", ended.Load)
	if a.Held(lease) || a.Suspended(lease.Range.Start) || resumed.Load() {
		t.Errorf("a has resumed or kept %v", lease)
	}
	eventually(t, time.Minute, "all keys are owned", func() bool { return complete(a, b) })
	if failed != "all" && !kept.Load() {
		t.Errorf("when the lease of a ended, b did not have %v", grant)
	}
	if l, ok := a.Check(lease.Range.Start); ok && l.Generation <= grant.Generation {
		t.Errorf("a has %v again", l)
	}
}
