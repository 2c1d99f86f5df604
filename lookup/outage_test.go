package lookup_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lookup"
)

// While a key has no owner, many callers that retry cause few additional requests.
func TestHintsBackOffWithoutOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m := g.start("m", 2) // key 7 has no owner
		l := g.open(g.config("m"))
		ctx, cancel := context.WithCancel(t.Context())
		var calling sync.WaitGroup
		for range 50 {
			calling.Go(func() {
				_ = l.Do(ctx, 7, func(context.Context, string) error { return leasehold.ErrNotOwner }, lookup.WithAttempts(1000))
			})
		}
		elapse(30 * time.Second) // hints after 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5 s, each minus up to a half
		if n := len(m.requests()); n > 25 {
			t.Errorf("%d requests in the first 30 s", n)
		}
		elapse(30 * time.Second)
		if n := len(m.requests()); n > 16 {
			t.Errorf("%d requests in the next 30 s, which are 6 polls", n)
		}
		cancel()
		calling.Wait()
	})
}

// A connection that drops all data is replaced, without a gap in the table.
func TestDeadConnectionIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m := g.start("m", 1)
		cfg := g.config("m")
		var lost atomic.Int64
		cfg.OnLoss = func(losses []leasehold.Loss) { lost.Add(int64(len(losses))) }
		l := g.open(cfg)
		elapse(time.Second)
		g.blackholeConns()
		m.lead(2)
		elapse(10 * time.Second)
		wantOwner(t, l, 7, "")
		if l.Age() > 6*time.Second || lost.Load() != 1 {
			t.Errorf("age %v, %d losses", l.Age(), lost.Load())
		}
	})
}

// blackholeConns makes all existing connections drop all data, as a firewall does without
// their state.
func (g *group) blackholeConns() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.conns {
		c.blackhole.Store(true)
	}
}

type blackholeConn struct {
	net.Conn
	blackhole atomic.Bool
}

func (c *blackholeConn) Write(b []byte) (int, error) {
	if c.blackhole.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *blackholeConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err != nil || !c.blackhole.Load() {
			return n, err
		}
	}
}

// The error of Do contains the time without a reply of a manager, if the managers do not reply.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m := g.start("m", 2) // key 7 has no owner
		l := g.open(g.config("m"))
		doError := func() string {
			err := l.Do(t.Context(), 7, func(context.Context, string) error { return nil }, lookup.WithAttempts(2))
			if !errors.Is(err, leasehold.ErrNoOwner) {
				t.Errorf("%v", err)
			}
			return err.Error()
		}
		elapse(time.Minute)
		if text := doError(); l.Silence() != 0 || strings.Contains(text, "manager") {
			t.Errorf("while the manager replies: silence %v, %s", l.Silence(), text)
		}
		m.stopReplying()
		elapse(20 * time.Second)
		silence := l.Silence()
		if silence < 15*time.Second || silence > 30*time.Second || !l.Ready() {
			t.Errorf("silence %v, ready %v", silence, l.Ready())
		}
		if text, want := doError(), fmt.Sprintf("no manager has replied for %v", silence.Round(time.Second)); !strings.Contains(text, want) {
			t.Errorf("want %q in %q", want, text)
		}
	})
}
