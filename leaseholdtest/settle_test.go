package leaseholdtest_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/owner"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// Settle waits for the expiry of leases of any
// duration.
func TestLongLease(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{Lease: 15 * time.Minute}, func(t *testing.T, c *leaseholdtest.Cluster) {
		a, b := c.Node("a"), c.Node("b")
		a.Join(owner.Config{})
		left := b.Join(owner.Config{})
		c.Settle()
		a.Expire()
		c.Settle()
		a.Kill()
		c.Settle()
		if !owns(left) {
			t.Error("after Settle the other owner does not hold the key")
		}
	})
}

// A long move does not change the table until it
// is complete.
func TestSettleWaitsForMoves(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		join := func(n *leaseholdtest.Node) *owner.Owner {
			mover := n.Mover()
			mover.IdleTimeout = 50 * time.Second
			mover.Export = func(ctx context.Context, out *owner.Export) error {
				select {
				case <-time.After(40 * time.Second):
					return out.Stop()
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			mover.Import = func(_ context.Context, in *owner.Import) (func(leasehold.Lease), error) {
				for _, err := range in.Records() {
					if err != nil {
						return nil, err
					}
				}
				return nil, nil
			}
			return n.Join(owner.Config{Mover: mover})
		}
		join(c.Node("a"))
		c.Settle()
		late := join(c.Node("b"))
		c.Settle()
		if len(late.Leases()) == 0 {
			t.Error("after Settle a move to the new owner is in progress")
		}
	})
}

// Owners and an unchanged table are not sufficient
// while some keys have no owner.
func TestSettleWaitsForVacantRanges(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		fix(t, c, &leaseholdv1.StaticSlot{Owner: "a"}, &leaseholdv1.StaticSlot{Start: 1 << 63, Owner: "b"})
		c.Node("a").Join(owner.Config{})
		joined := make(chan *owner.Owner, 1)
		go func() {
			defer close(joined)
			time.Sleep(2 * time.Minute)
			late, err := owner.Join(context.Background(), c.Node("b").OwnerConfig())
			if err != nil {
				t.Error(err)
				return
			}
			joined <- late
		}()
		c.Settle()
		if name, _ := c.Owner(1 << 63); name != "b" {
			t.Errorf("after Settle the owner of b's keys is %q", name)
		}
		if late := <-joined; late != nil {
			_ = late.Close(t.Context())
		}
	})
}

// fix assigns keys to owners by the static policy.
func fix(t *testing.T, c *leaseholdtest.Cluster, slots ...*leaseholdv1.StaticSlot) {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+c.Managers()[0], c.Node("console").DialOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // without pending requests
	_, err = leaseholdv1.NewAdminServiceClient(conn).UpdateNamespace(t.Context(), &leaseholdv1.UpdateNamespaceRequest{
		Version: wire.Version, Namespace: &leaseholdv1.NamespaceConfig{Name: string(c.Namespace()), Policy: "static", Static: slots},
	})
	if err != nil {
		t.Fatal(err)
	}
}
