package manager_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// The changes of a table are read page by page, newest first, from any manager.
func TestListChanges(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("m1")
		c.start("m2")
		c.create("m1", pool())
		a, b := c.join("a"), c.join("b")
		eventually(t, time.Minute, "both have something", func() bool { return complete(a, b) && len(b.Leases()) > 0 })
		newest := c.status("m1").GetNamespaces()[0].GetLsn()
		next, before := newest, uint64(0)
		for {
			answer, err := c.admin("m2").ListChanges(t.Context(), &leaseholdv1.ListChangesRequest{Version: wire.Version, Namespace: "pool", Before: before, Most: 2})
			if err != nil {
				t.Fatal(wire.ToError(err))
			}
			if len(answer.GetChanges()) > 2 {
				t.Fatalf("%d changes, want 2 at most", len(answer.GetChanges()))
			}
			for _, change := range answer.GetChanges() {
				if change.GetLsn() != next || change.GetAt() == nil || change.GetHolder().GetOwner() == "" {
					t.Fatalf("change %v, want LSN %d", change, next)
				}
				before, next = next, next-1
			}
			if !answer.GetMore() {
				break
			}
		}
		if next != 0 {
			t.Errorf("the first changes are missing, up to %d", next)
		}
		_, err := c.admin("m2").ListChanges(t.Context(), &leaseholdv1.ListChangesRequest{Version: wire.Version, Namespace: "none"})
		if kind := leasehold.KindOf(wire.ToError(err)); kind != leasehold.ErrNotFound {
			t.Errorf("changes of a missing namespace: %v", kind)
		}
	})
}

// Hot keys are listed, also by a standby.
func TestListHotKeys(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("m1")
		c.start("m2")
		c.create("m1", pool())
		a := c.join("a")
		for range 400 { // 40 s
			for i := range 10 {
				a.Check(leasehold.Key(i) << 60)
				a.Check(7 << 60)
			}
			time.Sleep(100 * time.Millisecond)
		}
		answer, err := c.admin("m2").ListHotKeys(t.Context(), &leaseholdv1.ListHotKeysRequest{Version: wire.Version, Namespace: "pool", Most: 3})
		if err != nil {
			t.Fatal(wire.ToError(err))
		}
		keys := answer.GetKeys()
		if len(keys) != 3 || keys[0].GetKey() != 7<<60 || keys[0].GetOwner() != "a" || keys[0].GetRate() < 90 || keys[0].GetRate() > 130 || keys[1].GetRate() > 20 {
			t.Errorf("want 7<<60 as the hottest of three, with about 110 per second: %v", keys)
		}
	})
}

// Each manager lists its lookups, with address and lag; one that sent a request after the last change has no
// lag.
func TestListLookups(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("m1")
		c.start("m2")
		c.create("m1", pool())
		a := c.join("a")
		c.open(addr("m2"))
		eventually(t, time.Minute, "all is owned", func() bool { return complete(a) })
		time.Sleep(12 * time.Second)
		ask := func() *leaseholdv1.ListLookupsResponse {
			answer, err := c.admin("m2").ListLookups(t.Context(), &leaseholdv1.ListLookupsRequest{Version: wire.Version, Namespace: "pool"})
			if err != nil {
				t.Fatal(wire.ToError(err))
			}
			return answer
		}
		answer := ask()
		if answer.GetTotal() != 1 || len(answer.GetLookups()) != 1 {
			t.Fatalf("%v, want one", answer)
		}
		l, lsn := answer.GetLookups()[0], c.status("m1").GetNamespaces()[0].GetLsn()
		if l.GetLsn() != lsn || l.GetBehind() != 0 || l.GetAddr() == "" || time.Duration(l.GetHeard()) > 6*time.Second || time.Duration(l.GetConnectedFor()) < 10*time.Second {
			t.Errorf("%v, want LSN %d, a request within 6 s and a connection of 10 s", l, lsn)
		}
	})
}

// The status has the leaderships that the manager has observed.
func TestLeaderships(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("m1")
		c.start("m2")
		c.create("m1", pool())
		before := time.Now()
		time.Sleep(5 * time.Second)
		c.crash("m1")
		eventually(t, time.Minute, "m2 leads", func() bool { return c.status("m2").GetLeader() == addr("m2") })
		all := c.status("m2").GetLeaderships()
		if len(all) < 2 || all[0].GetLeader() != addr("m2") || all[len(all)-1].GetLeader() == addr("m2") {
			t.Fatalf("leaderships %v, want m2 first, and m1 before it", all)
		}
		if at := all[0].GetAt().AsTime(); !at.After(before.Add(5*time.Second)) || all[0].GetTerm() <= all[len(all)-1].GetTerm() {
			t.Errorf("m2 leads since %v in term %d", at, all[0].GetTerm())
		}
	})
}
