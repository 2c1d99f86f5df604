package leasegrpc_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasegrpc"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/owner"
)

// If an attempt may have been executed, the error is indeterminate, whatever the result of later
// attempts.
func TestIndeterminateAttemptIsNotHidden(t *testing.T) {
	for name, test := range map[string]struct {
		after func(*leaseholdtest.Cluster, counterClient, *lookup.Lookup) // after the first attempt
		time  time.Duration
		code  codes.Code
		text  string
	}{
		"unreachable": {
			after: func(c *leaseholdtest.Cluster, _ counterClient, _ *lookup.Lookup) { c.Node("a").Kill() },
			time:  10 * time.Minute, code: codes.Unavailable, text: "gave up after 40 attempts",
		},
		"the time is over": {
			after: func(c *leaseholdtest.Cluster, _ counterClient, _ *lookup.Lookup) { c.Node("a").Kill() },
			time:  5 * time.Second, code: codes.DeadlineExceeded, text: "deadline exceeded",
		},
		"it is refused": {
			after: func(*leaseholdtest.Cluster, counterClient, *lookup.Lookup) {},
			time:  10 * time.Minute, code: codes.Unavailable, text: "nothing at all",
		},
		"the lookup is closed": {
			after: func(_ *leaseholdtest.Cluster, _ counterClient, l *lookup.Lookup) { _ = l.Close(context.Background()) },
			time:  10 * time.Minute, code: codes.Unavailable, text: "closed",
		},
		"too many others": {
			after: func(_ *leaseholdtest.Cluster, caller counterClient, _ *lookup.Lookup) {
				_, _ = caller.chat(context.Background(), leasegrpc.WithKey("alice"))
			},
			time: 10 * time.Minute, code: codes.Unavailable, text: "calls to the server are outstanding",
		},
	} {
		t.Run(name, func(t *testing.T) {
			leaseholdtest.Run(t, leaseholdtest.Config{Latency: time.Microsecond}, func(t *testing.T, c *leaseholdtest.Cluster) {
				begun, goOn := make(chan struct{}, 1), make(chan struct{})
				first := true
				play(t, c.Node("a"), func(context.Context, string) (int64, error) {
					if !first {
						return 0, leasehold.Errorf("add", leasehold.ErrNotOwner, "alice", "nothing at all")
					}
					first = false
					begun <- struct{}{}
					<-goOn
					return 0, status.Error(codes.Unavailable, "who knows")
				})
				c.Settle()
				caller, _, l := dialCounting(t, c.Node("caller"), leasegrpc.Config{Methods: byField, MaxOutstanding: 1})
				ctx, cancel := context.WithTimeout(t.Context(), test.time)
				defer cancel()
				result := make(chan error, 1)
				go func() {
					_, err := caller.add(ctx, "alice", leasegrpc.WithIdempotent())
					result <- err
				}()
				<-begun
				close(goOn)
				c.Advance(100 * time.Microsecond) // during the backoff of one or two milliseconds
				test.after(c, caller, l)
				err := <-result
				wantError(t, err, test.code, leasehold.ErrIndeterminate)
				wantText(t, err, "may have been executed", test.text)
				for _, kind := range []leasehold.Kind{leasehold.ErrNoOwner, leasehold.ErrNotOwner, leasehold.ErrLimit, leasehold.ErrClosed} {
					if errors.Is(err, kind) {
						t.Errorf("the error also has the kind %v: %v", kind, err)
					}
				}
				if late := test.code == codes.DeadlineExceeded; errors.Is(err, context.DeadlineExceeded) != late {
					t.Errorf("deadline exceeded is %v: %v", !late, err)
				}
			})
		})
	}
}

// A call that was sent and has no result may have been executed: its error has this kind, for each
// kind of call and each reason.
func TestCallsWithoutResultAreIndeterminate(t *testing.T) {
	kill := func(n *leaseholdtest.Node) { n.Kill() }
	calls := map[string]func(context.Context, counterClient) error{
		"unary": func(ctx context.Context, c counterClient) error {
			_, err := c.add(ctx, "alice")
			return err
		},
		"idempotent": func(ctx context.Context, c counterClient) error {
			_, err := c.add(ctx, "alice", leasegrpc.WithIdempotent())
			return err
		},
		"responses": func(ctx context.Context, c counterClient) error {
			w, err := c.watch(ctx, "alice")
			for err == nil {
				_, err = w.next()
			}
			return err
		},
		"requests": func(ctx context.Context, c counterClient) error {
			s, err := c.chat(ctx, leasegrpc.WithKey("alice"))
			if err == nil {
				_, err = s.next()
			}
			return err
		},
	}
	for reason, test := range map[string]struct {
		end  func(*leaseholdtest.Node)
		code codes.Code
	}{
		"killed":   {kill, codes.Unavailable},
		"deadline": {func(*leaseholdtest.Node) {}, codes.DeadlineExceeded},
	} {
		for name, call := range calls {
			t.Run(reason+"/"+name, func(t *testing.T) {
				leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
					n := c.Node("a")
					o := n.Join(owner.Config{})
					wait := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
					start(n, scripted{
						counters: newCounters(nil, o, nil),
						add:      func(ctx context.Context, _ string) (int64, error) { return 0, wait(ctx) },
						watch: func(s grpc.ServerStream) error {
							return errors.Join(s.SendMsg(wrapperspb.Int64(1)), wait(s.Context()))
						},
					}, protect(t, o)...)
					c.Settle()
					caller := dial(t, c.Node("caller"), leasegrpc.Config{Methods: map[string]leasegrpc.Method{
						methodAdd: {KeyField: "value"}, methodWatch: {KeyField: "value"},
					}})
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					result := make(chan error, 1)
					go func() { result <- call(ctx, caller) }()
					c.Advance(time.Second)
					test.end(n)
					err := <-result
					code := test.code
					if name == "idempotent" {
						code = codes.DeadlineExceeded // it is retried until then
					}
					wantError(t, err, code, leasehold.ErrIndeterminate)
				})
			})
		}
	}
}

// A call that ends while it waits for a connection was not sent.
func TestCallThatWasNotSentIsNotIndeterminate(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		serve(t, c.Node("a"))
		c.Settle()
		caller := dial(t, c.Node("caller"), leasegrpc.Config{Methods: byField})
		c.Node("a").Cut("caller")
		for code, end := range map[codes.Code]func() (context.Context, context.CancelFunc){
			codes.DeadlineExceeded: func() (context.Context, context.CancelFunc) { return context.WithTimeout(t.Context(), time.Second) },
			codes.Canceled: func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				return ctx, cancel
			},
		} {
			ctx, cancel := end()
			_, err := caller.add(ctx, "alice")
			cancel()
			wantError(t, err, code, leasehold.ErrNoOwner)
		}
	})
}
