package leasegrpc_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/leasegrpc"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/owner"
)

// A scripted server has a function of the test as its handler.
type scripted struct {
	*counters // for other methods
	add       func(ctx context.Context, name string) (int64, error)
	watch     func(stream grpc.ServerStream) error
}

func (s scripted) Watch(_ string, stream grpc.ServerStream) error { return s.watch(stream) }

func (s scripted) Add(ctx context.Context, name string) (int64, error) { return s.add(ctx, name) }

// play starts a scripted server.
func play(t *testing.T, n *leaseholdtest.Node, add func(ctx context.Context, name string) (int64, error)) *owner.Owner {
	t.Helper()
	o := n.Join(owner.Config{})
	start(n, scripted{add: add}, protect(t, o)...)
	return o
}

// plain returns an unrouted connection to one server.
func plain(t *testing.T, n *leaseholdtest.Node, to string) counterClient {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+c8080(to), n.DialOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	n.Cleanup(func(context.Context) { _ = conn.Close() })
	return counterClient{conn}
}

func c8080(host string) string { return host + ":8080" }

// Calls without a key fail in the caller, with the remedy in the error.
func TestMissingKey(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		caller := dial(t, c.Node("caller"), leasegrpc.Config{})
		_, err := caller.add(patient(t), "alice")
		wantError(t, err, codes.InvalidArgument, leasehold.ErrInvalid)
		wantText(t, err, methodAdd, "leasegrpc.WithKey", "KeyField")
		_, err = caller.watch(patient(t), "alice")
		wantError(t, err, codes.InvalidArgument, leasehold.ErrInvalid)
		_, err = caller.chat(patient(t))
		wantError(t, err, codes.InvalidArgument, leasehold.ErrInvalid)

		caller = dial(t, c.Node("caller"), leasegrpc.Config{Methods: byField})
		_, err = caller.add(patient(t), "")
		wantError(t, err, codes.InvalidArgument, leasehold.ErrInvalid)
		wantText(t, err, `field "value" is empty`)
		_, err = caller.watch(patient(t), "")
		wantError(t, err, codes.InvalidArgument, leasehold.ErrInvalid)
	})
}

func wantText(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("want %q in: %v", part, err)
		}
	}
}

// A server derives the key of a call itself, and rejects invalid keys.
func TestServerRejectsInvalidKeys(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		serve(t, c.Node("a"))
		c.Settle()
		caller := plain(t, c.Node("caller"), "a")
		if n, err := caller.add(patient(t), "alice"); n != 1 || err != nil {
			t.Errorf("with the key in the request: %d, %v", n, err)
		}
		keys := func(values ...string) context.Context {
			ctx := t.Context()
			for _, v := range values {
				ctx = metadata.AppendToOutgoingContext(ctx, "leasehold-key", v)
			}
			return ctx
		}
		alice, bob := leasehold.KeyOf("alice").String(), leasehold.KeyOf("bob").String()
		for _, c := range []struct {
			ctx  context.Context
			name string
			want string
		}{
			{keys("alice"), "alice", "16 hexadecimal digits"},
			{keys(alice, bob), "alice", "occurs 2 times"},
			{keys(bob), "alice", "routed by key " + bob},
			{keys(), "", `field "value" is empty`},
		} {
			_, err := caller.add(c.ctx, c.name)
			if wantText(t, err, c.want); status.Code(err) != codes.InvalidArgument {
				t.Errorf("%v", err)
			}
		}
		for _, c := range []struct {
			ctx  context.Context
			want string
		}{{keys(), "has no key"}, {keys("x"), "16 hexadecimal digits"}, {keys(bob), "routed by key " + bob}} {
			w, err := caller.watch(c.ctx, "alice")
			if err == nil {
				_, err = w.next()
			}
			if wantText(t, err, c.want); status.Code(err) != codes.InvalidArgument {
				t.Errorf("%v", err)
			}
		}
	})
}

// The status of a rejection, for clients in other languages.
func TestRejectionOnTheWire(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		serve(t, c.Node("a"))
		serve(t, c.Node("b"))
		c.Settle()
		owns, _ := c.Owner(leasehold.KeyOf("alice"))
		wrong := map[string]string{"a": "b", "b": "a"}[owns]
		_, err := plain(t, c.Node("caller"), wrong).add(patient(t), "alice")
		if status.Code(err) != codes.Aborted {
			t.Fatal(err)
		}
		want := &errdetails.ErrorInfo{
			Domain: "leasehold", Reason: "NOT_THE_OWNER",
			Metadata: map[string]string{"namespace": "test", "key": leasehold.KeyOf("alice").String(), "method": methodAdd, "field": "value"},
		}
		var got []*errdetails.ErrorInfo
		for _, d := range status.Convert(err).Details() {
			if i, ok := d.(*errdetails.ErrorInfo); ok {
				got = append(got, i)
			}
		}
		if diff := cmp.Diff([]*errdetails.ErrorInfo{want}, got, protocmp.Transform()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// The number of attempts is limited, and they end at the call's deadline.
func TestAttemptsAreLimited(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		calls := 0
		play(t, c.Node("a"), func(context.Context, string) (int64, error) {
			calls++
			return 0, leasehold.Errorf("add", leasehold.ErrNotOwner, "alice", "never")
		})
		c.Settle()
		asked := func(ctx context.Context, cfg leasegrpc.Config) (int, time.Duration, error) {
			cfg.Methods = byField
			caller := dial(t, c.Node("caller"), cfg)
			before, begun := calls, time.Now()
			_, err := caller.add(ctx, "alice")
			return calls - before, time.Since(begun), err
		}
		n, _, err := asked(patient(t), leasegrpc.Config{Attempts: 5})
		wantError(t, err, codes.Unavailable, leasehold.ErrNotOwner)
		wantText(t, err, "gave up after 5 attempts", "never")
		if n != 5 {
			t.Errorf("%d attempts, want 5", n)
		}
		n, took, err := asked(patient(t), leasegrpc.Config{})
		wantError(t, err, codes.Unavailable, leasehold.ErrNotOwner)
		if n != 40 || took > 40*time.Second {
			t.Errorf("%d attempts in %v, want 40 in less", n, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		n, took, err = asked(ctx, leasegrpc.Config{})
		wantError(t, err, codes.DeadlineExceeded, leasehold.ErrNotOwner)
		if n < 3 || took > time.Second {
			t.Errorf("%d attempts in %v", n, took)
		}
	})
}

// An application's error is returned without retries, whatever its code.
func TestApplicationErrorsAreNotRetried(t *testing.T) {
	passedOn := func(namespace, name string) error {
		refused := wire.FromError(leasehold.Errorf("add", leasehold.ErrNotOwner, name, "another server rejected it"))
		s, err := status.Convert(refused).WithDetails(&errdetails.ErrorInfo{
			Domain: "leasehold", Reason: "NOT_THE_OWNER",
			Metadata: map[string]string{"namespace": namespace, "key": leasehold.KeyOf(name).String()},
		})
		if err != nil {
			t.Fatal(err)
		}
		return s.Err()
	}
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		var reply error
		calls := 0
		play(t, c.Node("a"), func(context.Context, string) (int64, error) {
			calls++
			return 0, reply
		})
		c.Settle()
		caller := dial(t, c.Node("caller"), leasegrpc.Config{Methods: byField, Attempts: 3})
		for _, test := range []struct {
			reply   error
			options []grpc.CallOption
			code    codes.Code
			kind    leasehold.Kind
			calls   int
		}{
			{status.Error(codes.Aborted, "mine"), []grpc.CallOption{leasegrpc.WithIdempotent()}, codes.Aborted, leasehold.Other, 1},
			{status.Error(codes.FailedPrecondition, "mine"), nil, codes.FailedPrecondition, leasehold.Other, 1},
			{passedOn("other", "alice"), []grpc.CallOption{leasegrpc.WithIdempotent()}, codes.Aborted, leasehold.Other, 1},
			{passedOn("test", "bob"), []grpc.CallOption{leasegrpc.WithIdempotent()}, codes.Aborted, leasehold.Other, 1},
			{passedOn("test", "alice"), nil, codes.Unavailable, leasehold.ErrNotOwner, 3},
			{status.Error(codes.Unavailable, "or gRPC"), nil, codes.Unavailable, leasehold.ErrIndeterminate, 1},
			{status.Error(codes.Unavailable, "or gRPC"), []grpc.CallOption{leasegrpc.WithIdempotent()}, codes.Unavailable, leasehold.ErrIndeterminate, 3},
			{leasehold.Errorf("add", leasehold.ErrLimit, "", "full"), nil, codes.ResourceExhausted, leasehold.ErrLimit, 1},
			{leasehold.Errorf("add", leasehold.ErrStale, "", "old"), nil, codes.FailedPrecondition, leasehold.ErrStale, 1},
			{leasehold.ErrUnavailable, nil, codes.Unavailable, leasehold.ErrUnavailable, 1},
			{context.DeadlineExceeded, nil, codes.DeadlineExceeded, leasehold.Other, 1},
		} {
			reply, calls = test.reply, 0
			_, err := caller.add(patient(t), "alice", test.options...)
			wantError(t, err, test.code, test.kind)
			if calls != test.calls {
				t.Errorf("%v: called %d times, want %d", test.reply, calls, test.calls)
			}
		}
	})
}

// A call whose lease ends during the execution is retried only if it is idempotent.
func TestLeaseEndsDuringCall(t *testing.T) {
	for name, idempotent := range map[string]bool{"idempotent": true, "not": false} {
		t.Run(name, func(t *testing.T) {
			leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
				begun, goOn := make(chan string, 2), make(chan struct{})
				for _, at := range []string{"a", "b"} {
					play(t, c.Node(at), func(context.Context, string) (int64, error) {
						begun <- at
						<-goOn
						return 7, nil
					})
				}
				c.Settle()
				caller := dial(t, c.Node("caller"), leasegrpc.Config{Methods: map[string]leasegrpc.Method{
					methodAdd: {KeyField: "value", Idempotent: idempotent},
				}})
				result := make(chan error, 1)
				go func() {
					_, err := caller.add(patient(t), "alice")
					result <- err
				}()
				first := <-begun
				second := map[string]string{"a": "b", "b": "a"}[first]
				c.Move(rangeOf("alice"), second)
				close(goOn)
				err := <-result
				if !idempotent {
					wantError(t, err, codes.Unavailable, leasehold.ErrIndeterminate)
					wantText(t, err, "may have been executed")
					if len(begun) > 0 {
						t.Error("the call was executed twice")
					}
					return
				}
				if err != nil || len(begun) == 0 || <-begun != second {
					t.Errorf("the second call: %v", err)
				}
			})
		})
	}
}
