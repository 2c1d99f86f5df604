package leasegrpc_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasegrpc"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/owner"
)

// A stream sends no messages and no result while its lease is suspended, even if the handler
// ignores its context.
func TestStreamSendsNothingWithoutLease(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		goOn, sent := make(chan struct{}), make(chan error, 1)
		n := c.Node("a")
		o := n.Join(owner.Config{})
		start(n, scripted{watch: func(stream grpc.ServerStream) error {
			if err := stream.SendMsg(wrapperspb.Int64(1)); err != nil {
				return err
			}
			<-goOn
			sent <- stream.SendMsg(wrapperspb.Int64(2))
			return nil
		}}, protect(t, o)...)
		c.Settle()
		w, err := dial(t, c.Node("caller"), leasegrpc.Config{Methods: byField}).watch(patient(t), "alice")
		if err != nil {
			t.Fatal(err)
		}
		if n, err := w.next(); n != 1 || err != nil {
			t.Fatalf("watched %d, %v", n, err)
		}
		n.Cut()
		c.Advance(20 * time.Second)
		close(goOn)
		if err := <-sent; status.Code(err) != codes.Unavailable {
			t.Errorf("the message was sent: %v", err)
		}
		_, err = w.next()
		wantError(t, err, codes.Unavailable, leasehold.ErrIndeterminate)
	})
}

// A call that reaches the next owner before the state waits there and is not rejected.
func TestCallWaitsForTheState(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		const install = 700 * time.Millisecond
		arrived := map[string]int{}
		for _, name := range []string{"a", "b"} {
			n := c.Node(name)
			mover := n.Mover()
			mover.Export = func(_ context.Context, out *owner.Export) error { return out.Stop() }
			mover.Import = func(_ context.Context, in *owner.Import) (func(leasehold.Lease), error) {
				for range in.Records() {
				}
				return func(leasehold.Lease) { time.Sleep(install) }, nil
			}
			o := n.Join(owner.Config{Mover: mover})
			count := func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
				arrived[name]++ // sequential
				return handle(ctx, request)
			}
			add := func(context.Context, string) (int64, error) { return 1, nil }
			start(n, scripted{add: add}, append([]grpc.ServerOption{grpc.ChainUnaryInterceptor(count)}, protect(t, o)...)...)
		}
		c.Settle()
		node := c.Node("caller")
		caller, _, l := dialCounting(t, node, leasegrpc.Config{Methods: byField})
		from, _ := l.Find(leasehold.KeyOf("alice"))
		to := map[string]string{"a:8080": "b", "b:8080": "a"}[from]
		moved := make(chan error, 1)
		go func() {
			for {
				changed := l.Changed()
				if addr, ok := l.Find(leasehold.KeyOf("alice")); ok && addr != from {
					break
				}
				<-changed
			}
			clear(arrived)
			_, err := caller.add(patient(t), "alice")
			moved <- err
		}()
		c.Move(rangeOf("alice"), to)
		if err := <-moved; err != nil || arrived[to] != 1 {
			t.Errorf("%v; the call reached the next owner %d times, want once", err, arrived[to])
		}
	})
}
