package manager_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

func contains(text, part string) bool { return strings.Contains(text, part) }

// A namespace is created, changed while it is in use, deleted, and created again: generations continue to
// rise.
func TestNamespaceLifecycle(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("m1")
		c.create("m1", pool())
		admin, ctx := c.admin("m1"), t.Context()
		_, err := admin.CreateNamespace(ctx, &leaseholdv1.CreateNamespaceRequest{Version: wire.Version, Namespace: pool()})
		if err = wire.ToError(err); !errors.Is(err, leasehold.ErrExists) {
			t.Errorf("second creation: %v", err)
		}
		a := c.join("a")
		eventually(t, 5*time.Second, "a has everything", func() bool { return complete(a) })

		longer := pool()
		longer.Timing = &leaseholdv1.Timing{Lease: int64(20 * time.Second)}
		if _, err := admin.UpdateNamespace(ctx, &leaseholdv1.UpdateNamespaceRequest{Version: wire.Version, Namespace: longer}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		if !complete(a) {
			t.Error("a lost leases because of a new configuration")
		}
		generation := c.status("m1").GetNamespaces()[0].GetNewestGeneration()

		if _, err := admin.DeleteNamespace(ctx, &leaseholdv1.DeleteNamespaceRequest{Version: wire.Version, Name: "pool"}); err != nil {
			t.Fatal(err)
		}
		if n := len(c.status("m1").GetNamespaces()); n != 0 {
			t.Errorf("%d namespaces are left", n)
		}
		c.create("m1", pool())
		eventually(t, time.Minute, "a has everything again", func() bool { return complete(a) })
		if newest := c.status("m1").GetNamespaces()[0].GetNewestGeneration(); newest < generation {
			t.Errorf("generation %d follows %d", newest, generation)
		}
	})
}

// The configuration of a namespace is in the store, and survives a failover.
func TestConfigurationSurvivesFailover(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("m1")
		config := pool()
		config.Policy, config.MaxOwners = "even", 7
		c.create("m1", config)
		c.stop("m1")
		c.start("m2")
		eventually(t, 5*time.Second, "m2 leads", func() bool { return c.status("m2").GetLeader() == addr("m2") })
		answer, err := c.admin("m2").ListNamespaces(t.Context(), &leaseholdv1.ListNamespacesRequest{Version: wire.Version})
		if err != nil {
			t.Fatal(err)
		}
		if got := answer.GetNamespaces()[0]; got.GetPolicy() != "even" || got.GetMaxOwners() != 7 {
			t.Errorf("m2 has %v", got)
		}
	})
}

// The history of a key has its owners, times and causes.
func TestHistory(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("m1")
		c.create("m1", pool())
		a := c.join("a")
		eventually(t, 5*time.Second, "a has everything", func() bool { return complete(a) })
		c.leave(a)
		b := c.join("b")
		eventually(t, 5*time.Second, "b has everything", func() bool { return complete(b) })
		answer, err := c.admin("m1").ListHistory(t.Context(), &leaseholdv1.ListHistoryRequest{Version: wire.Version, Namespace: "pool", Key: 42})
		if err != nil {
			t.Fatal(err)
		}
		var story []string
		for _, e := range answer.GetEntries() {
			story = append(story, e.GetKind().String()+" "+e.GetHolder().GetOwner()+" "+e.GetCause().String())
		}
		want := "CHANGE_KIND_GRANTED b CAUSE_UNSPECIFIED, CHANGE_KIND_VACATED a CAUSE_LEFT, CHANGE_KIND_GRANTED a CAUSE_UNSPECIFIED"
		if got := strings.Join(story, ", "); got != want || answer.GetTruncated() {
			t.Errorf("the history of a key, newest first:\n%s\nwant\n%s", got, want)
		}
	})
}

// The log of changes is in the store: the next leader has all of it, and appends to it.
func TestChangesSurviveFailover(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("m1")
		c.start("m2")
		c.create("m1", pool())
		a := c.join("a")
		eventually(t, 5*time.Second, "a has everything", func() bool { return complete(a) })
		c.leave(a)
		before := c.changes("m2", 0)
		c.crash("m1")
		b := c.join("b")
		eventually(t, 30*time.Second, "b has everything", func() bool { return complete(b) })
		after := c.changes("m2", 0)
		if len(before) == 0 || len(after) <= len(before) {
			t.Fatalf("%d changes before, %d after", len(before), len(after))
		}
		if diff := cmp.Diff(before, after[len(after)-len(before):], protocmp.Transform()); diff != "" {
			t.Errorf("the log before the failover is not the tail of the one after it:\n%s", diff)
		}
		if diff := cmp.Diff(after, c.changes("m2", 1), protocmp.Transform()); diff != "" {
			t.Errorf("the log differs when it is read in pages:\n%s", diff)
		}
	})
}

// changes reads the whole log, newest first, in pages of a size; 0: in one.
func (c *cluster) changes(at string, piece uint32) []*leaseholdv1.HistoryEntry {
	c.t.Helper()
	var all []*leaseholdv1.HistoryEntry
	for r := (&leaseholdv1.ListChangesRequest{Version: wire.Version, Namespace: "pool", Most: piece}); ; {
		answer, err := c.admin(at).ListChanges(c.t.Context(), r)
		if err != nil {
			c.t.Fatal(wire.ToError(err))
		}
		if piece > 0 && len(answer.GetChanges()) > int(piece) || answer.GetTruncated() || answer.GetBegun() != 0 {
			c.t.Fatalf("got %v", answer)
		}
		all = append(all, answer.GetChanges()...)
		if !answer.GetMore() {
			return all
		}
		r.Before = all[len(all)-1].GetLsn()
	}
}

// A forwarded status has the receiving manager's own usage and clocks.
func TestForwardedStatusDescribesReceiver(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("m1")
		time.Sleep(10 * time.Second)
		c.start("m2")
		c.create("m1", pool())
		a := c.join("a")
		eventually(t, 5*time.Second, "a has everything", func() bool { return complete(a) })
		clocks := make(map[string]time.Duration)
		for _, name := range []string{"m1", "m2"} {
			s := c.status(name)
			clocks[name] = time.Duration(s.GetClocks().GetMonotonic())
			if u := s.GetUsages(); len(u) != 2 || u[0].GetUsed() != 1 || u[0].GetMost() != 1<<16 {
				t.Errorf("%s: %v, want one owner", name, u)
			}
			if got := s.GetClocks(); !got.GetWall().AsTime().Equal(time.Now()) || got.GetDrift() != 1.2 || got.GetEpsilon() != 0 {
				t.Errorf("%s: %v at %v", name, got, time.Now())
			}
		}
		if diff := clocks["m1"] - clocks["m2"]; diff < 10*time.Second {
			t.Errorf("m1 started 10s earlier, and its clock is %v ahead", diff)
		}
	})
}

// Watch sends changes and notes, also through a standby.
func TestWatch(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("m1")
		c.start("m2")
		c.create("m1", pool())
		watch, err := c.admin("m2").Watch(t.Context(), &leaseholdv1.WatchRequest{Version: wire.Version, Namespace: "pool"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		c.join("a")
		var notes []string
		for {
			event, err := watch.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if n := event.GetNote(); n != nil {
				notes = append(notes, n.GetWhat()+" "+n.GetOwner())
			}
			if change := event.GetChange(); change != nil {
				if change.GetHolder().GetOwner() != "a" || change.GetLsn() != 1 {
					t.Errorf("the first change is %v", change)
				}
				break
			}
		}
		if got := strings.Join(notes, ", "); got != "hello a, joined a" {
			t.Errorf("notes: %s", got)
		}
	})
}
