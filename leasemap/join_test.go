package leasemap_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/owner"
)

// Join combines the callbacks of the application with those of the map.
func TestJoin(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		n := c.Node("a")
		var revoked atomic.Int64
		cfg := n.MovingConfig()
		cfg.OnRevoke = func(ended []leasehold.Lease, _ leasehold.Cause) { revoked.Add(int64(len(ended))) }
		m, err := leasemap.Join(t.Context(), cfg, leasemap.Config[string]{})
		if err != nil {
			t.Fatal(err)
		}
		n.Cleanup(func(ctx context.Context) { _ = m.Close(ctx) })
		c.Settle()
		if _, err := m.Set(t.Context(), "x", "1"); err != nil || m.Len() != 1 {
			t.Errorf("%v, %d names", err, m.Len())
		}
		n.Cut()
		c.Node("b").Join(owner.Config{}) // gets all keys
		c.Settle()
		if revoked.Load() != 0 || m.Len() != 1 {
			t.Errorf("suspended: %d leases revoked, and %d names left", revoked.Load(), m.Len())
		}
		n.Heal()
		c.Settle()
		if revoked.Load() == 0 || m.Len() != 0 {
			t.Errorf("%d leases revoked, and %d names left", revoked.Load(), m.Len())
		}
	})
}

// Every way to join by which values of a map would not move is refused.
func TestJoinErrors(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		n := c.Node("a")
		cfg := n.MovingConfig()
		cfg.Mover.Export = func(context.Context, *owner.Export) error { return nil }
		_, err := leasemap.Join(t.Context(), cfg, leasemap.Config[string]{})
		wantInvalid(t, err, "Mover has Export or Import")
		_, err = leasemap.New(leasemap.Config[string]{}, n.Join(owner.Config{}))
		wantInvalid(t, err, "use Join, or a Group")
		alone, err := leasemap.New(leasemap.Config[string]{}, all{})
		if err != nil {
			t.Fatal(err)
		}
		wantInvalid(t, alone.Close(t.Context()), "not from Join")

		var g, empty leasemap.Group
		wantInvalid(t, empty.Join(t.Context(), n.MovingConfig()), "no map")
		wantInvalid(t, empty.Close(t.Context()), "has no owner")
		leasemap.Add(&g, "users", leasemap.Config[string]{})
		leasemap.Add(&g, "users", leasemap.Config[int]{})
		leasemap.Add(&g, "rooms", leasemap.Config[int]{Max: -1})
		leasemap.Add(&g, strings.Repeat("x", 101), leasemap.Config[int]{})
		err = g.Join(t.Context(), n.MovingConfig())
		wantInvalid(t, err, `"users": the group has a map of this name`)
		wantInvalid(t, err, "Max is -1")
		wantInvalid(t, err, "at most 100 bytes")

		var joined leasemap.Group
		m := leasemap.Add(&joined, "users", leasemap.Config[string]{})
		b := c.Node("b")
		if err := joined.Join(t.Context(), b.MovingConfig()); err != nil {
			t.Fatal(err)
		}
		b.Cleanup(func(ctx context.Context) { _ = joined.Close(ctx) })
		wantInvalid(t, joined.Join(t.Context(), b.MovingConfig()), "joined already")
		wantInvalid(t, m.Close(t.Context()), "close its Group")
		defer func() {
			if p := recover(); p == nil {
				t.Error("Add after Join does not panic")
			}
		}()
		leasemap.Add(&joined, "late", leasemap.Config[string]{})
	})
}

func wantInvalid(t *testing.T, err error, part string) {
	t.Helper()
	if leasehold.KindOf(err) != leasehold.ErrInvalid || !strings.Contains(err.Error(), part) {
		t.Errorf("error %v, want one with %q", err, part)
	}
}

// A server that closes right after Join of another one has returned moves its values to that. What happens is not
// determined by the virtual clock alone, so it is tried several times.
func TestCloseAfterJoinMovesState(t *testing.T) {
	for range 20 {
		leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
			leave := serve(t, c.Node("a"))
			c.Settle()
			caller := newClient(c.Node("caller"))
			mustSet(t, caller, "alice", "at lunch")
			serve(t, c.Node("b"))
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := leave(ctx); err != nil {
				t.Fatal(err)
			}
			c.Node("a").Kill()
			if got, err := caller.call(t.Context(), http.MethodGet, "alice", reply{}, false); err != nil || got.Value != "at lunch" {
				t.Fatalf("the value is %q after the first server has closed: %v", got.Value, err)
			}
		})
	}
}

// Close moves the values also while OnAlarm waits for the end of its context.
func TestCloseDuringAlarm(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		rings := make(chan string, 100)
		cfg := leasemap.Config[string]{OnAlarm: func(ctx context.Context, _ string, e *leasemap.Entry[string]) error {
			rings <- e.Value
			<-ctx.Done()
			return ctx.Err()
		}}
		x, err := leasemap.Join(t.Context(), c.Node("x").MovingConfig(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		c.Settle()
		if _, err := x.Do(t.Context(), "a", func(e *leasemap.Entry[string]) error { e.Value = "1"; e.Alarm(time.Now()); return nil }); err != nil {
			t.Fatal(err)
		}
		<-rings
		y, err := leasemap.Join(t.Context(), c.Node("y").MovingConfig(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		c.Node("y").Cleanup(func(ctx context.Context) { _ = y.Close(ctx) })
		if err := x.Close(t.Context()); err != nil {
			t.Error(err)
		}
		select {
		case value := <-rings: // at y
			if value != "1" {
				t.Errorf("the alarm has the value %q after Close", value)
			}
		case <-time.After(time.Minute):
			t.Error("the value is lost")
		}
	})
}
