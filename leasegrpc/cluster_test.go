package leasegrpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasegrpc"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/owner"
)

// serve starts a server of counters on a node, which moves their state.
func serve(t *testing.T, n *leaseholdtest.Node) *counters {
	t.Helper()
	return serveWorking(t, n, func() {})
}

// serveWorking starts one whose handlers also call work.
func serveWorking(t *testing.T, n *leaseholdtest.Node, work func()) *counters {
	t.Helper()
	cfg := n.MovingConfig()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	m, err := leasemap.Join(ctx, cfg, leasemap.Config[int64]{})
	if err != nil {
		t.Fatal(err)
	}
	c := newCounters(m, m.Owner(), work)
	start(n, c, protect(t, c.owner)...)
	n.Cleanup(func(ctx context.Context) { _ = m.Close(ctx) })
	return c
}

// serveUnmoved starts one that does not move state.
func serveUnmoved(t *testing.T, n *leaseholdtest.Node) *counters {
	t.Helper()
	o := n.Join(owner.Config{})
	m, err := leasemap.New(leasemap.Config[int64]{}, struct{ owner.Checker }{o})
	if err != nil {
		t.Fatal(err)
	}
	c := newCounters(m, o, func() {})
	start(n, c, protect(t, c.owner)...)
	n.Cleanup(func(ctx context.Context) { _ = c.owner.Close(ctx) })
	return c
}

// protect returns the options of a server.
func protect(t *testing.T, o *owner.Owner) []grpc.ServerOption {
	t.Helper()
	options, err := leasegrpc.ServerOptions(o, leasegrpc.ServerConfig{Methods: byField})
	if err != nil {
		t.Fatal(err)
	}
	return options
}

// byField has the key in the request.
var byField = map[string]leasegrpc.Method{
	methodAdd:   {KeyField: "value"},
	methodWatch: {KeyField: "value", Idempotent: true},
}

// start starts a server with a handler of counters.
func start(n *leaseholdtest.Node, h handler, options ...grpc.ServerOption) {
	run(n, counterDesc(), h, options...)
}

// run runs a server until its node ends.
func run(n *leaseholdtest.Node, desc *grpc.ServiceDesc, service any, options ...grpc.ServerOption) {
	l := n.Listen(leaseholdtest.Port)
	s := grpc.NewServer(options...)
	s.RegisterService(desc, service)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Serve(l) // until the listener is closed
	}()
	n.Cleanup(func(context.Context) {
		s.Stop()
		<-ended
	})
}

// dial returns a routed connection of a node.
func dial(t *testing.T, n *leaseholdtest.Node, cfg leasegrpc.Config) counterClient {
	t.Helper()
	options, err := leasegrpc.DialOptions(n.Lookup(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("leasehold:///test", append(options, n.DialOptions()...)...)
	if err != nil {
		t.Fatal(err)
	}
	n.Cleanup(func(context.Context) { _ = conn.Close() })
	return counterClient{conn}
}

// patient is a context with a generous timeout.
func patient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// mustAdd adds to a counter and checks the result.
func mustAdd(t *testing.T, c counterClient, name string, want int64, options ...grpc.CallOption) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if n, err := c.add(ctx, name, options...); err != nil || n != want {
		t.Fatalf("add to %s: %d, %v; want %d", name, n, err, want)
	}
}

// wantError checks the code and the kind of an error.
func wantError(t *testing.T, err error, code codes.Code, kind leasehold.Kind) {
	t.Helper()
	if status.Code(err) != code || leasehold.KindOf(err) != kind {
		t.Errorf("code %v, kind %v: %v; want %v and %v", status.Code(err), leasehold.KindOf(err), err, code, kind)
	}
}

// Calls reach the owners of their keys, for all ways to set the key.
func TestCallsReachTheOwner(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		servers := map[string]*counters{}
		for _, name := range []string{"a", "b", "c"} {
			servers[name] = serve(t, c.Node(name))
		}
		c.Settle()
		caller := dial(t, c.Node("caller"), leasegrpc.Config{Methods: byField})
		want := map[string]int64{}
		for i := range 60 {
			name := fmt.Sprint("user-", i)
			at, _ := c.Owner(leasehold.KeyOf(name))
			want[at] += 3
			mustAdd(t, caller, name, 1)
			mustAdd(t, caller, name, 2, leasegrpc.WithKey(name))
			mustAdd(t, caller, name, 3, leasegrpc.WithRawKey(leasehold.KeyOf(name)))
		}
		for name, s := range servers {
			if got := s.calls.Load(); got != want[name] || got == 0 {
				t.Errorf("%s got %d calls, want %d", name, got, want[name])
			}
		}
	})
}

// Streams are routed, too, and end with the lease.
func TestStreams(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		serve(t, c.Node("a"))
		serve(t, c.Node("b"))
		c.Settle()
		caller := dial(t, c.Node("caller"), leasegrpc.Config{Methods: byField})
		w, err := caller.watch(patient(t), "alice")
		if err != nil {
			t.Fatal(err)
		}
		chat, err := caller.chat(patient(t), leasegrpc.WithKey("alice"))
		if err != nil {
			t.Fatal(err)
		}
		for i := range int64(3) {
			if n, err := w.next(); n != i || err != nil {
				t.Fatalf("watched %d, %v; want %d", n, err, i)
			}
			if err := chat.SendMsg(wrapperspb.String("alice")); err != nil {
				t.Fatal(err)
			}
			if n, err := chat.next(); n != i+1 || err != nil {
				t.Fatalf("received %d, %v; want %d", n, err, i+1)
			}
		}
		_, _ = w.next()
		from, _ := c.Owner(leasehold.KeyOf("alice"))
		other := map[string]string{"a": "b", "b": "a"}[from]
		c.Move(rangeOf("alice"), other)
		_, err = w.next()
		wantError(t, err, codes.Unavailable, leasehold.ErrIndeterminate)
		_ = chat.SendMsg(wrapperspb.String("alice"))
		_, err = chat.next()
		wantError(t, err, codes.Unavailable, leasehold.ErrIndeterminate)

		w, err = caller.watch(patient(t), "alice")
		if err != nil {
			t.Fatal(err)
		}
		if n, err := w.next(); n != 3 || err != nil {
			t.Errorf("watched %d, %v at the next owner; want 3", n, err)
		}
	})
}

func rangeOf(name string) leasehold.Range {
	k := leasehold.KeyOf(name)
	return leasehold.Range{Start: k, Limit: k + 1}
}

// A call that reaches the wrong server is not executed there, and retried at the owner, with or
// without a stream of responses.
func TestRejectedCallIsRetried(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		servers := map[string]*counters{"a": serve(t, c.Node("a")), "b": serve(t, c.Node("b"))}
		c.Settle()
		node := c.Node("caller")
		caller := dial(t, node, leasegrpc.Config{Methods: byField})
		mustAdd(t, caller, "alice", 1)
		node.Cut() // from the managers: its table becomes stale
		from, _ := c.Owner(leasehold.KeyOf("alice"))
		to := map[string]string{"a": "b", "b": "a"}[from]
		c.Move(rangeOf("alice"), to)

		before := servers[from].calls.Load()
		type answer struct {
			n   int64
			err error
		}
		added, watched := make(chan answer, 1), make(chan answer, 1)
		go func() {
			n, err := caller.add(patient(t), "alice")
			added <- answer{n, err}
		}()
		go func() {
			w, err := caller.watch(patient(t), "alice")
			if err != nil {
				watched <- answer{0, err}
				return
			}
			n, err := w.next()
			for n == 1 && err == nil { // the first call may have been in time
				n, err = w.next()
			}
			watched <- answer{n, err}
		}()
		c.Advance(time.Second)
		if len(added) > 0 || len(watched) > 0 {
			t.Error("a server that is not the owner has executed a call")
		}
		node.Heal()
		if a := <-added; a.n != 2 || a.err != nil {
			t.Errorf("got %v, want 2", a)
		}
		if a := <-watched; a.n != 2 || a.err != nil {
			t.Errorf("watched %v, want 2", a)
		}
		if n := servers[from].calls.Load() - before; n != 0 {
			t.Errorf("the handler of the wrong server was called %d times", n)
		}
	})
}

// A stream ends with EOF when its handler returns.
func TestStreamEnds(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		serve(t, c.Node("a"))
		c.Settle()
		chat, err := dial(t, c.Node("caller"), leasegrpc.Config{}).chat(patient(t), leasegrpc.WithKey("alice"))
		if err != nil {
			t.Fatal(err)
		}
		if err := chat.CloseSend(); err != nil {
			t.Error(err)
		}
		if _, err := chat.next(); !errors.Is(err, io.EOF) {
			t.Errorf("the stream ended with %v", err)
		}
	})
}
