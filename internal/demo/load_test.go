package demo

import (
	"context"
	"iter"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/witness"
	"github.com/leasehold-dev/leasehold/lookup"
)

// aTable sends all callers to one server, and tells them of the losses that it is
// given. For one key it has no owner until a time.
type aTable struct {
	losses chan leasehold.Loss

	mu      sync.Mutex
	unowned leasehold.Key
	until   time.Time
}

// takeAway leaves a key without an owner for a while.
func (a *aTable) takeAway(key leasehold.Key, d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unowned, a.until = key, time.Now().Add(d)
}

func (a *aTable) Find(key leasehold.Key) (string, bool) { return "server", a.away(key) <= 0 }

// away is for how long a key will have no owner.
func (a *aTable) away(key leasehold.Key) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if key != a.unowned {
		return 0
	}
	return time.Until(a.until)
}

func (a *aTable) Do(ctx context.Context, key leasehold.Key, f func(context.Context, string) error, _ ...lookup.DoOption) error {
	if d := a.away(key); d > 0 && !pause(ctx, d) {
		return ctx.Err()
	}
	return f(ctx, "server")
}

func (a *aTable) Losses(ctx context.Context) iter.Seq[leasehold.Loss] {
	return func(yield func(leasehold.Loss) bool) {
		for {
			select {
			case l := <-a.losses:
				if !yield(l) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

func (a *aTable) Close() error { return nil }

// aServer answers as the presence service does, without a network. It forgets
// everything when it is told to.
type aServer struct {
	mu       sync.Mutex
	presence *presence
}

func newServer() *aServer {
	s := &aServer{}
	s.forget()
	return s
}

func (s *aServer) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.presence = newPresence(&fakeLeases{generation: 1}, leasehold.Session{1}, func(...witness.Record) error { return nil })
}

func (s *aServer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	p := s.presence
	s.mu.Unlock()
	w := httptest.NewRecorder()
	p.handler().ServeHTTP(w, r)
	return w.Result(), nil
}

// runLoad lets users call for ten seconds, in virtual time, and lets something
// happen after five.
func runLoad(t *testing.T, cfg Config, a *aTable, happens func(*aServer)) (counts, pace) {
	t.Helper()
	server := newServer()
	l := newLoad(&cfg, a, server)
	defer l.close()
	sending, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	var other sync.WaitGroup
	other.Go(func() {
		pause(t.Context(), 5*time.Second+time.Millisecond)
		happens(server)
	})
	if err := l.run(sending, t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}
	other.Wait()
	return l.counts(), l.tally.overall(10 * time.Second)
}

// TestRequestsAreDueAtTheRate.
func TestRequestsAreDueAtTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := runLoad(t, Config{Users: 50, Rate: 200}, &aTable{}, func(*aServer) {})
		if c.requests < 1990 || c.requests > 2000 || c.prompt != c.requests || c.failures != 0 || c.silent != 0 || c.stale != 0 {
			t.Errorf("got %+v", c)
		}
	})
}

// TestBusyUsersAreNotPassedOver: one of ten users finds no owner for four
// seconds. Each of the requests that become due meanwhile waits, and counts from
// when it was due.
func TestBusyUsersAreNotPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		us := newUsers(10)
		a := &aTable{unowned: us[3].key, until: time.Now().Add(4 * time.Second)}
		c, p := runLoad(t, Config{Users: 10, Rate: 100}, a, func(*aServer) {})
		late := c.requests - c.prompt // about a tenth of those of three seconds
		if c.requests < 990 || late < 15 || late > 50 || c.failures != 0 {
			t.Errorf("%d of %d requests were late, %d failed", late, c.requests, c.failures)
		}
		if p.slow < 2*time.Second || p.median > time.Millisecond {
			t.Errorf("half within %v, 99 of 100 within %v", p.median, p.slow)
		}
		if c.unowned < 3*time.Second || c.unowned > 4*time.Second {
			t.Errorf("tried for %v", c.unowned)
		}
		if passed := c.requests - c.firstTry; passed < late {
			t.Errorf("%d requests did not succeed at once, but %d were late", passed, late)
		}
	})
}

// TestSilentLossesAreSeen, and those that are told in time are no silent ones.
func TestSilentLossesAreSeen(t *testing.T) {
	all := leasehold.Loss{Range: leasehold.All, Cause: leasehold.CauseExpired}
	for _, test := range []struct {
		name   string
		losses func(a *aTable)
		silent bool
	}{
		{"nobody is told", func(*aTable) {}, true},
		{"told at once", func(a *aTable) { a.losses <- all }, false},
		{"told late", func(a *aTable) { pause(context.Background(), noticePatience/2); a.losses <- all }, false},
		{"told too late", func(a *aTable) { pause(context.Background(), 2*noticePatience); a.losses <- all }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &aTable{losses: make(chan leasehold.Loss, 1)}
				c, _ := runLoad(t, Config{Users: 20, Rate: 100}, a, func(s *aServer) {
					s.forget()
					test.losses(a)
				})
				if (c.silent > 0) != test.silent || c.silent > 20 {
					t.Errorf("%d silent losses", c.silent)
				}
				if c.stale != 0 || (c.republished > 0) != (c.losses > 0) {
					t.Errorf("got %+v", c)
				}
			})
		})
	}
}

// TestANoticeThatComesFirstExplains, though the answer was on its way before.
func TestANoticeThatComesFirstExplains(t *testing.T) {
	s, u, now := newSuspicions(), &user{}, time.Now()
	u.lost.Store(true)
	s.explain(u)
	s.suspect(u, now)
	if n := s.open(now); n != 0 {
		t.Errorf("%d open", n)
	}
	u.lost.Store(false)
	s.suspect(u, now)
	s.suspect(u, now.Add(noticePatience-1)) // the same, not another one
	if s.open(now) != 1 || s.silent(now.Add(noticePatience)) != 1 || s.open(now) != 0 {
		t.Error("what was not explained was not counted once")
	}
}
