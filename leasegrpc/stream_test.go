package leasegrpc_test

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasegrpc"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/owner"
)

// playWatch starts a server with this handler of streams.
func playWatch(t *testing.T, n *leaseholdtest.Node, watch func(grpc.ServerStream) error) *owner.Owner {
	t.Helper()
	o := n.Join(owner.Config{})
	start(n, scripted{watch: watch}, protect(t, o)...)
	return o
}

// leave releases the keys of an owner, so that they have none.
func leave(t *testing.T, o *owner.Owner) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := o.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// A response that has arrived is received although the key has no owner any more.
func TestArrivedResponseIsReceivedWithoutOwner(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		o := playWatch(t, c.Node("a"), func(s grpc.ServerStream) error { return s.SendMsg(wrapperspb.Int64(7)) })
		c.Settle()
		caller, _, l := dialCounting(t, c.Node("caller"), leasegrpc.Config{Methods: byField})
		w, err := caller.watch(patient(t), "alice")
		if err != nil {
			t.Fatal(err)
		}
		c.Advance(time.Second)
		leave(t, o)
		c.Advance(time.Second)
		if addr, ok := l.Find(leasehold.KeyOf("alice")); ok {
			t.Fatalf("%s owns the key", addr)
		}
		begun := time.Now()
		if n, err := w.next(); n != 7 || err != nil {
			t.Errorf("watched %d, %v; want the response", n, err)
		}
		if _, err := w.next(); !errors.Is(err, io.EOF) {
			t.Errorf("the stream ended with %v", err)
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("the response took %v", took)
		}
	})
}

// A stream that breaks before its first response is indeterminate, even if the key has no owner
// at the time of the first receive.
func TestBrokenStreamIsIndeterminate(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		playWatch(t, c.Node("a"), func(s grpc.ServerStream) error {
			<-s.Context().Done()
			return s.Context().Err()
		})
		c.Settle()
		caller, _, l := dialCounting(t, c.Node("caller"), leasegrpc.Config{Methods: byField})
		w, err := caller.watch(patient(t), "alice")
		if err != nil {
			t.Fatal(err)
		}
		c.Advance(time.Second)
		c.Node("a").Kill()
		last := c.Node("b").Join(owner.Config{})
		c.Settle()
		if err := last.Close(patient(t)); err != nil {
			t.Fatal(err)
		}
		c.Advance(time.Minute)
		if addr, ok := l.Find(leasehold.KeyOf("alice")); ok {
			t.Fatalf("%s owns the key", addr)
		}
		_, err = w.next()
		wantError(t, err, codes.Unavailable, leasehold.ErrIndeterminate)
		wantText(t, err, "may have been executed", "gave up after 40 attempts")
	})
}

// A rejected stream is opened up to Attempts times.
func TestStreamAttemptsAreLimited(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		calls := 0
		playWatch(t, c.Node("a"), func(grpc.ServerStream) error {
			calls++
			return leasehold.Errorf("watch", leasehold.ErrNotOwner, "alice", "never")
		})
		c.Settle()
		for _, attempts := range []int{1, 4} {
			calls = 0
			w, err := dial(t, c.Node("caller"), leasegrpc.Config{Methods: byField, Attempts: attempts}).watch(patient(t), "alice")
			if err != nil {
				t.Fatal(err)
			}
			_, err = w.next()
			wantError(t, err, codes.Unavailable, leasehold.ErrNotOwner)
			if calls != attempts {
				t.Errorf("the stream was opened %d times, want %d", calls, attempts)
			}
		}
	})
}

// The rejection of a stream of requests refreshes the table for the next stream.
func TestRejectedRequestStreamRefreshesTheTable(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{Lease: time.Hour}, func(t *testing.T, c *leaseholdtest.Cluster) {
		refuse := func(any, grpc.ServerStream, *grpc.StreamServerInfo, grpc.StreamHandler) error {
			return leasehold.ErrNotOwner
		}
		n := c.Node("a")
		start(n, scripted{}, append(protect(t, n.Join(owner.Config{})), grpc.ChainStreamInterceptor(refuse))...)
		c.Settle()
		n = c.Node("caller")
		var questions atomic.Int64
		cfg := leasegrpc.Config{Lookup: n.LookupConfig()}
		cfg.Lookup.Poll, cfg.Lookup.Stale = time.Hour, 24*time.Hour // no polls during the test
		cfg.Lookup.DialOptions = append(cfg.Lookup.DialOptions, grpc.WithStatsHandler(sent{&questions}))
		conn, err := leasegrpc.NewClient(patient(t), "leasehold:///test", cfg, n.DialOptions()...)
		if err != nil {
			t.Fatal(err)
		}
		n.Cleanup(func(context.Context) { _ = conn.Close() })
		c.Advance(10 * time.Second)
		before := questions.Load()
		c.Advance(10 * time.Second)
		if n := questions.Load() - before; n != 0 {
			t.Fatalf("%d requests to managers without a hint", n)
		}
		chat, err := counterClient{conn}.chat(patient(t), leasegrpc.WithKey("alice"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = chat.next()
		wantError(t, err, codes.Aborted, leasehold.ErrNotOwner)
		c.Advance(time.Second)
		if n := questions.Load() - before; n != 1 {
			t.Errorf("%d requests to managers, want 1", n)
		}
	})
}

// sent counts sent messages.
type sent struct{ n *atomic.Int64 }

func (s sent) HandleRPC(_ context.Context, e stats.RPCStats) {
	if _, ok := e.(*stats.OutPayload); ok {
		s.n.Add(1)
	}
}

func (sent) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (sent) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (sent) HandleConn(context.Context, stats.ConnStats)                       {}
