package leasemap_test

import (
	"context"
	"net/http"
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

func TestJoinErrors(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		n := c.Node("a")
		cfg := n.OwnerConfig()
		m, err := leasemap.New(leasemap.Config[string]{})
		if err != nil {
			t.Fatal(err)
		}
		cfg.Mover = m.Mover()
		if _, err := leasemap.Join(t.Context(), cfg, leasemap.Config[string]{}); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("a Mover with Export: %v", err)
		}
		if err := m.Close(t.Context()); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("Close without Join: %v", err)
		}
	})
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
