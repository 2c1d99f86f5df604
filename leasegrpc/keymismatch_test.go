package leasegrpc_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/sourcecontextpb"
	"google.golang.org/protobuf/types/known/typepb"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasegrpc"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/owner"
)

const methodNested = "/" + serviceOdd + "/Nested"

// elsewhere is a name that the owner of alice does not own.
func elsewhere(c *leaseholdtest.Cluster) string {
	has, _ := c.Owner(leasehold.KeyOf("alice"))
	for _, name := range strings.Fields("bob carol dave erin frank grace heidi ivan judy mallory") {
		if other, ok := c.Owner(leasehold.KeyOf(name)); ok && other != has {
			return name
		}
	}
	panic("one server owns all of them")
}

// If caller and server have different KeyFields, the call fails without retries, with both
// fields in the error.
func TestOtherField(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		for _, name := range []string{"a", "b"} {
			n := c.Node(name)
			options, err := leasegrpc.ServerOptions(n.Join(owner.Config{}), leasegrpc.ServerConfig{
				Methods: map[string]leasegrpc.Method{methodNested: {KeyField: "source_context.file_name"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			startOdd(n, func(context.Context) { t.Error("a handler was called") }, options...)
		}
		c.Settle()
		other := elsewhere(c)
		request := &typepb.Type{Name: "alice", SourceContext: &sourcecontextpb.SourceContext{FileName: other}}
		caller := dial(t, c.Node("caller"), leasegrpc.Config{Methods: map[string]leasegrpc.Method{methodNested: {KeyField: "name"}}})
		began := time.Now()
		err := caller.Invoke(patient(t), methodNested, request, new(emptypb.Empty))
		wantError(t, err, codes.InvalidArgument, leasehold.ErrInvalid)
		wantText(t, err, `"name"`, leasehold.KeyOf("alice").String(), `"source_context.file_name"`, leasehold.KeyOf(other).String())
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A call whose handler uses another key than that of the call is not retried.
func TestOtherKeyInTheHandler(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		calls, other := 0, ""
		for _, name := range []string{"a", "b"} {
			n := c.Node(name)
			inner, err := leasemap.Join(patient(t), n.MovingConfig(), leasemap.Config[int64]{})
			if err != nil {
				t.Fatal(err)
			}
			n.Cleanup(func(ctx context.Context) { _ = inner.Close(ctx) })
			start(n, scripted{add: func(ctx context.Context, _ string) (int64, error) {
				calls++
				_, _, err := inner.Get(other)
				return 0, err
			}}, protect(t, inner.Owner())...)
		}
		c.Settle()
		other = elsewhere(c)
		caller := dial(t, c.Node("caller"), leasegrpc.Config{Methods: byField})
		_, err := caller.add(patient(t), "alice")
		wantError(t, err, codes.InvalidArgument, leasehold.ErrInvalid)
		wantText(t, err, other, leasehold.KeyOf("alice").String(), leasehold.KeyOf(other).String())
		if calls != 1 {
			t.Errorf("%d calls", calls)
		}
	})
}

// The rejection of a call that a handler made itself, with another key, is not a rejection of
// the handler's call, even for the same method.
func TestForwardedRejection(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		other := ""
		for _, name := range []string{"a", "b"} {
			n := c.Node(name)
			back := plain(t, n, name)
			play(t, n, func(ctx context.Context, _ string) (int64, error) { return back.add(ctx, other) })
		}
		c.Settle()
		other = elsewhere(c)
		_, err := dial(t, c.Node("caller"), leasegrpc.Config{Methods: byField}).add(patient(t), "alice")
		wantError(t, err, codes.Aborted, leasehold.Other)
	})
}
