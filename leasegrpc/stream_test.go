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

// playWatch starts a server that streams as a test says.
func playWatch(t *testing.T, n *leaseholdtest.Node, watch func(grpc.ServerStream) error) *owner.Owner {
	t.Helper()
	o := n.Join(owner.Config{})
	start(n, scripted{watch: watch}, protect(t, o)...)
	return o
}

// leave has an owner give its keys back, so that nobody owns them.
func leave(t *testing.T, o *owner.Owner) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := o.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// An answer that has come is received, although nobody owns the key any more.
func TestAnswerOutlivesItsOwner(t *testing.T) {
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
			t.Errorf("watched %d, %v; want the answer", n, err)
		}
		if _, err := w.next(); !errors.Is(err, io.EOF) {
			t.Errorf("it ends with %v", err)
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("it took %v", took)
		}
	})
}

// A stream that broke before it had answered may have done something, even if nobody
// owns the key by the time that anybody receives from it.
func TestStreamMaybeDone(t *testing.T) {
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
		wantText(t, err, "may have been carried out", "gave up after 40 attempts")
	})
}

// A stream that is refused is opened as often as a call may be tried.
func TestStreamAttempts(t *testing.T) {
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
				t.Errorf("it was opened %d times, want %d", calls, attempts)
			}
		}
	})
}

// A dialogue that is refused has the table looked at, for the one that the application
// opens next.
func TestRefusedDialogueRefreshes(t *testing.T) {
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
		cfg.Lookup.Poll, cfg.Lookup.Stale = time.Hour, 24*time.Hour // nothing is asked meanwhile but because of a hint
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
			t.Fatalf("%d questions were asked without a reason", n)
		}
		chat, err := counterClient{conn}.chat(patient(t), leasegrpc.WithKey("alice"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = chat.next()
		wantError(t, err, codes.Aborted, leasehold.ErrNotOwner)
		c.Advance(time.Second)
		if n := questions.Load() - before; n != 1 {
			t.Errorf("the managers were asked %d times, want once", n)
		}
	})
}

// sent counts messages that leave.
type sent struct{ n *atomic.Int64 }

func (s sent) HandleRPC(_ context.Context, e stats.RPCStats) {
	if _, ok := e.(*stats.OutPayload); ok {
		s.n.Add(1)
	}
}

func (sent) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (sent) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (sent) HandleConn(context.Context, stats.ConnStats)                       {}
