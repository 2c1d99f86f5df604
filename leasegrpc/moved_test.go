package leasegrpc_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasegrpc"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/owner"
)

// maxGrace is the longest time from a change of the table until the end of a call to the previous
// owner.
const maxGrace = 2 * time.Second

// A pausing is a cluster of two servers of which one will not respond.
type pausing struct {
	*leaseholdtest.Cluster
	caller counterClient
	lookup *lookup.Lookup
	paused *leaseholdtest.Node // the owner of alice
	moved  time.Time           // when the caller's table had another owner
}

func runPausing(t *testing.T, test func(t *testing.T, p *pausing)) {
	t.Helper()
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		serve(t, c.Node("a"))
		serve(t, c.Node("b"))
		c.Settle()
		p := &pausing{Cluster: c}
		p.caller, _, p.lookup = dialCounting(t, c.Node("caller"), leasegrpc.Config{Methods: byField})
		owns, _ := c.Owner(leasehold.KeyOf("alice"))
		p.paused = c.Node(owns)
		test(t, p)
		p.paused.Resume()
	})
}

// awaitMove waits until the caller's table has another owner.
func (p *pausing) awaitMove(t *testing.T) {
	t.Helper()
	for {
		changed := p.lookup.Changed()
		if addr, ok := p.lookup.Find(leasehold.KeyOf("alice")); ok && addr != p.paused.Addr() {
			p.moved = time.Now()
			return
		}
		select {
		case <-changed:
		case <-time.After(time.Minute):
			t.Fatal("the paused server still owns the key")
		}
	}
}

// wantGrace checks the time since the table has another owner.
func (p *pausing) wantGrace(t *testing.T) {
	t.Helper()
	if took := time.Since(p.moved); took < maxGrace/2 || took > maxGrace+100*time.Millisecond {
		t.Errorf("the call ended %v after the table changed, want 1s to 2s", took)
	}
}

// A call to a server that does not respond is retried at the next owner of its key if it is
// idempotent, and is indeterminate otherwise.
func TestCallToPausedServerEndsAfterItsKeyMoved(t *testing.T) {
	for name, options := range map[string][]grpc.CallOption{"idempotent": {leasegrpc.WithIdempotent()}, "not idempotent": nil} {
		t.Run(name, func(t *testing.T) {
			runPausing(t, func(t *testing.T, p *pausing) {
				mustAdd(t, p.caller, "alice", 1)
				p.paused.Pause()
				result := make(chan error, 1)
				go func() {
					_, err := p.caller.add(patient(t), "alice", options...)
					result <- err
				}()
				p.awaitMove(t)
				err := <-result
				p.wantGrace(t)
				if options != nil {
					if err != nil {
						t.Errorf("the call was not retried: %v", err)
					}
					return
				}
				wantMoved(t, err)
			})
		})
	}
}

func wantMoved(t *testing.T, err error) {
	t.Helper()
	wantError(t, err, codes.Unavailable, leasehold.ErrIndeterminate)
	wantText(t, err, "the key moved to another server", "may have been executed")
	if errors.Is(err, context.Canceled) {
		t.Errorf("the caller did not cancel the call: %v", err)
	}
}

// Streams end, too: in each operation that waits for the server.
func TestStreamToPausedServerEndsAfterItsKeyMoved(t *testing.T) {
	type open = func(ctx context.Context, c counterClient) (*numbers, error)
	watch := func(ctx context.Context, c counterClient) (*numbers, error) { return c.watch(ctx, "alice") }
	chat := func(ctx context.Context, c counterClient) (*numbers, error) {
		return c.chat(ctx, leasegrpc.WithKey("alice"))
	}
	receive := func(s *numbers) error { _, err := s.next(); return err }
	send := func(s *numbers) error {
		long := wrapperspb.String(strings.Repeat("x", 1<<20))
		for { // until the window is full
			if err := s.SendMsg(long); errors.Is(err, io.EOF) {
				return receive(s)
			} else if err != nil {
				return err
			}
		}
	}
	header := func(s *numbers) error {
		_, err := s.Header()
		if err == nil { // of an ended stream without header
			err = receive(s)
		}
		return err
	}
	for name, c := range map[string]struct {
		open
		wait func(*numbers) error
	}{
		"responses": {watch, receive}, "requests": {chat, receive}, "full window": {chat, send}, "header": {chat, header},
	} {
		t.Run(name, func(t *testing.T) {
			runPausing(t, func(t *testing.T, p *pausing) {
				s, err := c.open(patient(t), p.caller)
				if err != nil {
					t.Fatal(err)
				}
				if name == "responses" {
					if n, err := s.next(); n != 0 || err != nil {
						t.Fatal(n, err)
					}
				}
				p.Advance(time.Second)
				p.paused.Pause()
				result := make(chan error, 1)
				go func() { result <- c.wait(s) }()
				p.awaitMove(t)
				err = <-result
				p.wantGrace(t)
				wantMoved(t, err)
			})
		})
	}
}

// A stream that cannot be opened, because its server has reached the limit of streams and does not
// respond, ends like a call.
func TestOpeningOfStreamEndsAfterItsKeyMoved(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		n := c.Node("a")
		o := n.Join(owner.Config{})
		start(n, scripted{counters: newCounters(nil, o, nil)}, append(protect(t, o), grpc.MaxConcurrentStreams(1))...)
		c.Settle()
		p := &pausing{Cluster: c, paused: n}
		p.caller, _, p.lookup = dialCounting(t, c.Node("caller"), leasegrpc.Config{Methods: byField})
		if _, err := p.caller.chat(patient(t), leasegrpc.WithKey("bob")); err != nil {
			t.Fatal(err)
		}
		c.Advance(time.Second)
		n.Pause()
		serve(t, c.Node("b"))
		result := make(chan error, 1)
		go func() {
			_, err := p.caller.chat(patient(t), leasegrpc.WithKey("alice"))
			result <- err
		}()
		p.awaitMove(t)
		err := <-result
		p.wantGrace(t)
		wantError(t, err, codes.Unavailable, leasehold.ErrIndeterminate)
		n.Resume()
	})
}

// Before the first response an idempotent stream is opened at the next owner.
func TestStreamWithoutResponseFollowsItsKey(t *testing.T) {
	runPausing(t, func(t *testing.T, p *pausing) {
		mustAdd(t, p.caller, "alice", 1) // connects
		p.paused.Pause()
		s, err := p.caller.watch(patient(t), "alice")
		if err != nil {
			t.Fatal(err)
		}
		result := make(chan error, 1)
		go func() { _, err := s.next(); result <- err }()
		p.awaitMove(t)
		if err := <-result; err != nil {
			t.Error(err)
		}
		p.wantGrace(t)
	})
}

// A response that has arrived is received, however late, although the key has moved.
func TestArrivedResponseIsReceivedAfterItsKeyMoved(t *testing.T) {
	runPausing(t, func(t *testing.T, p *pausing) {
		s, err := p.caller.watch(patient(t), "alice")
		if err != nil {
			t.Fatal(err)
		}
		p.Advance(time.Second)
		p.paused.Pause()
		p.awaitMove(t)
		p.Advance(time.Minute)
		if n, err := s.next(); n != 0 || err != nil {
			t.Errorf("watched %d, %v; want the response", n, err)
		}
		p.moved = time.Now()
		_, err = s.next()
		p.wantGrace(t)
		wantMoved(t, err)
	})
}
