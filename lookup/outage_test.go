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

// While a key has no owner, callers without number cost hardly more questions
// than none.
func TestHintsFadeInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m := g.start("m", 2) // nobody owns key 7
		l := g.open(g.config("m"))
		ctx, cancel := context.WithCancel(t.Context())
		var calling sync.WaitGroup
		for range 50 {
			calling.Go(func() {
				_ = l.Do(ctx, 7, func(context.Context, string) error { return leasehold.ErrNotOwner }, lookup.WithAttempts(1000))
			})
		}
		elapse(30 * time.Second) // hints after 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5 s, each up to a half sooner
		if n := len(m.questions()); n > 25 {
			t.Errorf("asked %d times in the first 30 s", n)
		}
		elapse(30 * time.Second)
		if n := len(m.questions()); n > 16 {
			t.Errorf("asked %d times in the next 30 s, which are 6 polls", n)
		}
		cancel()
		calling.Wait()
	})
}

// A connection that swallows everything is replaced: the lookup goes on knowing
// the table without a gap.
func TestDeadConnectionIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m := g.start("m", 1)
		cfg := g.config("m")
		var told atomic.Int64
		cfg.OnLoss = func(losses []leasehold.Loss) { told.Add(int64(len(losses))) }
		l := g.open(cfg)
		elapse(time.Second)
		g.forgetConns()
		m.lead(2)
		elapse(10 * time.Second)
		wantOwner(t, l, 7, "")
		if l.Age() > 6*time.Second || told.Load() != 1 {
			t.Errorf("age %v, told of %d losses", l.Age(), told.Load())
		}
	})
}

// forgetConns makes all connections that there are swallow what is sent, as if
// a firewall had forgotten them.
func (g *group) forgetConns() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.conns {
		c.faded.Store(true)
	}
}

type fadingConn struct {
	net.Conn
	faded atomic.Bool
}

func (c *fadingConn) Write(b []byte) (int, error) {
	if c.faded.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *fadingConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err != nil || !c.faded.Load() {
			return n, err
		}
	}
}

// Whoever waits in vain for an owner is told if that is because the managers are away.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m := g.start("m", 2) // nobody owns key 7
		l := g.open(g.config("m"))
		givesUp := func() string {
			err := l.Do(t.Context(), 7, func(context.Context, string) error { return nil }, lookup.WithAttempts(2))
			if !errors.Is(err, leasehold.ErrNoOwner) {
				t.Errorf("%v", err)
			}
			return err.Error()
		}
		elapse(time.Minute)
		if text := givesUp(); l.Silence() != 0 || strings.Contains(text, "manager") {
			t.Errorf("a manager answers, but: %v, %s", l.Silence(), text)
		}
		m.fallSilent()
		elapse(20 * time.Second)
		silence := l.Silence()
		if silence < 15*time.Second || silence > 30*time.Second || !l.Ready() {
			t.Errorf("silence %v, ready %v", silence, l.Ready())
		}
		if text, want := givesUp(), fmt.Sprintf("no manager has been heard of for %v", silence.Round(time.Second)); !strings.Contains(text, want) {
			t.Errorf("want %q in %q", want, text)
		}
	})
}
