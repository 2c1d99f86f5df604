package lookup_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lookup"
)

// keyOf is the key of a test's name: "low..." is in the lower half.
func keyOf(name string) leasehold.Key {
	if name[0] == 'l' {
		return 1
	}
	return half + 1
}

// Watch yields each owner of one key, and nothing of others.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m := g.start("m", 1)
		l := g.open(g.config("m"))
		ctx, cancel := context.WithCancel(t.Context())
		var got []string
		var end error
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for p, err := range l.Watch(ctx, 1) {
				if err != nil {
					end = err
					return
				}
				got = append(got, fmt.Sprintf("%d %s", p.Generation, p.Addr))
			}
		}()
		for n := 1; n < 5; n++ {
			m.push(t, n, n+1)
			synctest.Wait()
		}
		cancel()
		<-ended
		if want := []string{"1 a:1", "0 ", "2 b:1"}; !slices.Equal(got, want) || !errors.Is(end, context.Canceled) {
			t.Errorf("%q, %v, want %q", got, end, want)
		}
	})
}

func TestGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		g.start("m", 4) // upper has no owner
		var names []string
		want := make(map[string][]string)
		for i := range 20 {
			name := fmt.Sprint(i)
			addr := ""
			if leasehold.KeyOf(name) < half {
				addr = "b:1"
			}
			names, want[addr] = append(names, name), append(want[addr], name)
		}
		if diff := cmp.Diff(want, g.open(g.config("m")).Group(names)); diff != "" {
			t.Error(diff)
		}
	})
}

// A calls records calls of Send, and how many ran at once.
type calls struct {
	mu      sync.Mutex
	sent    map[string]int
	running int
	most    int
	fail    func(name string) error
}

func (c *calls) send(l *lookup.Lookup) func(context.Context, string, string, bool) (leasehold.Generation, error) {
	return func(_ context.Context, name, _ string, _ bool) (leasehold.Generation, error) {
		c.mu.Lock()
		c.sent[name]++
		c.running++
		c.most = max(c.most, c.running)
		fail := c.fail
		c.mu.Unlock()
		time.Sleep(time.Millisecond) // of the fake clock
		c.mu.Lock()
		c.running--
		c.mu.Unlock()
		if fail != nil {
			if err := fail(name); err != nil {
				return 0, err
			}
		}
		at, _ := l.At(keyOf(name))
		return at.Generation, nil
	}
}

// take returns the calls since the last call of take, after all have come to rest.
func (c *calls) take() map[string]int {
	time.Sleep(time.Second)
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	sent := maps.Clone(c.sent)
	clear(c.sent)
	return sent
}

// Only states that were lost are sent again, at most as many at once as Concurrency. A caller that was restarted continues
// from its LSN, which does not pass a loss whose states have not been created again.
func TestPublisher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m := g.start("m", 1)
		l := g.open(g.config("m"))
		c := &calls{sent: make(map[string]int)}
		run := func(from leasehold.LSN, restore map[string]leasehold.Generation) (p *lookup.Publisher[string], stop func()) {
			p = lookup.NewPublisher(l, lookup.PublisherConfig[string]{Send: c.send(l), Key: keyOf, From: from, Concurrency: 3})
			for name, written := range restore {
				p.Restore(name, "state", written)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- p.Run(ctx) }()
			return p, func() {
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
		}
		p, stop := run(0, nil)
		states, lower := make(map[string]leasehold.Generation), make(map[string]int)
		for i := range 10 {
			for _, name := range []string{fmt.Sprint("low ", i), fmt.Sprint("up ", i)} {
				if err := p.Publish(t.Context(), name, "state"); err != nil {
					t.Fatal(err)
				}
				states[name] = 1
				if name[0] == 'l' {
					lower[name] = 1
				}
			}
		}
		c.take()
		c.mu.Lock()
		c.most = 0
		c.mu.Unlock()
		m.push(t, 1, 3)
		if diff := cmp.Diff(lower, c.take()); diff != "" || p.Stats().Republished != 10 || p.LSN() != 2 || c.most != 3 {
			t.Errorf("%+v, LSN %d, %d at once; calls (-want +got):\n%s", p.Stats(), p.LSN(), c.most, diff)
		}
		stop()
		for name := range lower {
			states[name] = 2
		}

		// Restarted, with a loss meanwhile and servers that fail.
		m.push(t, 3, 5)
		down := func(name string) error {
			if name == "up 5" {
				return leasehold.ErrUnavailable
			}
			return nil
		}
		c.fail = down
		p, stop = run(p.LSN(), states)
		sent := c.take()
		if len(sent) != 10 || sent["up 5"] < 2 || sent["up 1"] != 1 || p.LSN() != 2 {
			t.Errorf("after a restart %v were sent, LSN %d", sent, p.LSN())
		}
		c.mu.Lock()
		c.fail = nil
		c.mu.Unlock()
		c.take()
		if stats := p.Stats(); p.LSN() != 4 || stats != (lookup.PublisherStats{Names: 20, Republished: 10}) {
			t.Errorf("LSN %d, %+v", p.LSN(), stats)
		}
		if diff := cmp.Diff(map[string]int{}, c.take()); diff != "" {
			t.Error(diff)
		}
		if was, err := p.Withdraw(t.Context(), "up 1"); !was || err != nil {
			t.Errorf("%v, %v", was, err)
		}
		c.fail = func(string) error { return leasehold.ErrExists }
		if err := p.Publish(t.Context(), "up 2", "other"); !errors.Is(err, leasehold.ErrExists) || p.Stats().Names != 18 || p.Stats().Dropped != 1 {
			t.Errorf("%v, %+v", err, p.Stats())
		}
		stop()

		// Reports of losses that precede the states cause no call.
		for name := range states {
			states[name] = 2
			if name[0] == 'u' {
				states[name] = 3
			}
		}
		_, stop = run(1, states)
		if diff := cmp.Diff(map[string]int{"up 2": 1}, c.take()); diff != "" { // that of Publish
			t.Error(diff)
		}
		stop()
	})
}
