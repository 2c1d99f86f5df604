package leasegrpc_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasegrpc"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/owner"
)

// A stream sends no header while its lease is suspended.
func TestStreamSendsNoHeaderWithoutLease(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		begun, goOn, sent := make(chan struct{}, 1), make(chan struct{}), make(chan error, 1)
		n := c.Node("a")
		playWatch(t, n, func(stream grpc.ServerStream) error {
			begun <- struct{}{}
			<-goOn
			sent <- stream.SendHeader(metadata.Pairs("balance", "7"))
			return nil
		})
		c.Settle()
		methods := map[string]leasegrpc.Method{methodWatch: {KeyField: "value"}}
		w, err := dial(t, c.Node("caller"), leasegrpc.Config{Methods: methods}).watch(patient(t), "alice")
		if err != nil {
			t.Fatal(err)
		}
		<-begun
		n.Cut()
		c.Advance(20 * time.Second)
		close(goOn)
		if err := <-sent; status.Code(err) != codes.Unavailable {
			t.Errorf("the header was sent: %v", err)
		}
		if md, _ := w.Header(); len(md.Get("balance")) > 0 {
			t.Errorf("the header has arrived: %v", md)
		}
		_, err = w.next()
		wantError(t, err, codes.Unavailable, leasehold.ErrIndeterminate)
	})
}

// A stream sends its header with the lease.
func TestStreamSendsHeaderWithLease(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		playWatch(t, c.Node("a"), func(stream grpc.ServerStream) error {
			return stream.SendHeader(metadata.Pairs("balance", "7"))
		})
		c.Settle()
		w, err := dial(t, c.Node("caller"), leasegrpc.Config{Methods: byField}).watch(patient(t), "alice")
		if err != nil {
			t.Fatal(err)
		}
		if md, err := w.Header(); err != nil || len(md.Get("balance")) != 1 {
			t.Errorf("got %v, %v", md, err)
		}
	})
}

// A handler may forward its incoming metadata with another call: the key of that call replaces the
// one in the metadata.
func TestForwardedMetadataHasTheKeyOfTheCall(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		var arrived metadata.MD
		note := func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			arrived, _ = metadata.FromIncomingContext(ctx)
			return handle(ctx, request)
		}
		n := c.Node("a")
		o := n.Join(owner.Config{})
		start(n, scripted{
			add:   func(context.Context, string) (int64, error) { return 1, nil },
			watch: func(s grpc.ServerStream) error { return s.SendMsg(wrapperspb.Int64(1)) },
		}, append([]grpc.ServerOption{grpc.ChainUnaryInterceptor(note)}, protect(t, o)...)...)
		c.Settle()
		caller := dial(t, c.Node("caller"), leasegrpc.Config{Methods: byField})
		alice := leasehold.KeyOf("alice").String()
		ctx := metadata.NewOutgoingContext(patient(t), metadata.Pairs("leasehold-key", "bob", "leasehold-key-kind", "name", "trace", "1"))
		ctx = metadata.AppendToOutgoingContext(ctx, "Leasehold-Key", leasehold.KeyOf("carol").String(), "trace", "2")
		for _, test := range []struct {
			options []grpc.CallOption
			want    []string
		}{{nil, nil}, {[]grpc.CallOption{leasegrpc.WithKey("alice")}, []string{alice}}} {
			if _, err := caller.add(ctx, "alice", test.options...); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(test.want, arrived.Get("leasehold-key")); diff != "" {
				t.Errorf("the key (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"1", "2"}, arrived.Get("trace")); diff != "" {
				t.Errorf("the rest (-want +got):\n%s", diff)
			}
		}
		w, err := caller.watch(ctx, "alice")
		if err != nil {
			t.Fatal(err)
		}
		if n, err := w.next(); n != 1 || err != nil {
			t.Errorf("watched %d, %v", n, err)
		}
		if sent, _ := metadata.FromOutgoingContext(ctx); len(sent.Get("leasehold-key")) != 2 {
			t.Errorf("the caller's own metadata was changed: %v", sent)
		}
	})
}
