package demo

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"net/http/httptest"
	"path"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/server/proc"
)

// aTable routes all requests to one server, and notifies callers of the given losses. One key has
// no owner until a given time.
type aTable struct {
	losses chan leasehold.Loss

	mu      sync.Mutex
	unowned leasehold.Key
	until   time.Time
}

// takeAway leaves a key without an owner for a duration.
func (a *aTable) takeAway(key leasehold.Key, d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unowned, a.until = key, time.Now().Add(d)
}

func (a *aTable) Find(key leasehold.Key) (string, bool) { return "server", a.away(key) <= 0 }

func (a *aTable) At(leasehold.Key) (lookup.Placement, bool) { return lookup.Placement{}, false }

func (a *aTable) Changed() <-chan struct{} { return nil }

// away returns how long a key will have no owner.
func (a *aTable) away(key leasehold.Key) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if key != a.unowned {
		return 0
	}
	return time.Until(a.until)
}

func (a *aTable) Losses(ctx context.Context) iter.Seq2[leasehold.Loss, error] {
	return func(yield func(leasehold.Loss, error) bool) {
		for {
			select {
			case l := <-a.losses:
				if !yield(l, nil) {
					return
				}
			case <-ctx.Done():
				yield(leasehold.Loss{}, context.Cause(ctx))
				return
			}
		}
	}
}

func (a *aTable) Close(context.Context) error { return nil }

// aServer responds like a server of the presence service, without a network and without leases,
// unless it is down.
type aServer struct {
	mu       sync.Mutex
	statuses map[string]status
	down     bool
}

func (s *aServer) setDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// clear removes all statuses.
func (s *aServer) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.statuses = nil
}

// RoundTrip processes requests to the server itself.
func (s *aServer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, errors.New("connection refused")
	}
	w := httptest.NewRecorder()
	if r.Method == http.MethodPost {
		var all []status
		_ = json.NewDecoder(r.Body).Decode(&all)
		for i, q := range all {
			all[i] = s.statuses[q.User]
		}
		respond(w, func() (any, error) { return all, nil })
		return w.Result(), nil
	}
	name := path.Base(r.URL.Path)
	var set status
	if r.Method == http.MethodPut {
		_ = json.NewDecoder(r.Body).Decode(&set)
		if s.statuses == nil {
			s.statuses = make(map[string]status)
		}
		s.statuses[name] = set
	}
	respond(w, func() (any, error) { return s.statuses[name], nil })
	return w.Result(), nil
}

// aRoute sends requests to the server once their key has an owner, and retries until it responds.
type aRoute struct {
	table  *aTable
	server *aServer
}

func (a aRoute) RoundTrip(r *http.Request) (*http.Response, error) {
	if d := a.table.away(leasehold.KeyOf(path.Base(r.URL.Path))); d > 0 && !proc.Pause(r.Context(), d) {
		return nil, r.Context().Err()
	}
	for {
		answer, err := countedTransport{a.server}.RoundTrip(r)
		if err == nil || !proc.Pause(r.Context(), time.Millisecond) {
			return answer, err
		}
	}
}

func newTestLoad(cfg *Config, a *aTable) (*load, *aServer) {
	server := &aServer{}
	return newLoad(cfg, a, aRoute{a, server}, server), server
}

// runLoad runs users for ten seconds of virtual time, and calls happens after five.
func runLoad(t *testing.T, cfg Config, a *aTable, happens func(*aServer)) counts {
	t.Helper()
	l, server := newTestLoad(&cfg, a)
	defer l.close()
	sending, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	var other sync.WaitGroup
	other.Go(func() {
		proc.Pause(t.Context(), 5*time.Second+time.Millisecond)
		happens(server)
	})
	if err := l.run(sending, t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}
	other.Wait()
	return l.tally.sum()
}

func TestRequestsAreDueAtTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := runLoad(t, Config{Users: 50, Rate: 200, ValueSize: 30}, &aTable{}, func(*aServer) {})
		if c.Requests < 1990 || c.Requests > 2000 || c.Availability != 1 || c.FirstTry < 0.9 || c.Failures+c.SilentLosses+c.StaleAnswers+c.Garbled != 0 {
			t.Errorf("got %+v", c)
		}
	})
}

// TestBusyUsersAreNotSkipped: one of ten users finds no owner for four seconds. Each request that
// becomes due in that time waits, and its latency counts from its due time.
func TestBusyUsersAreNotSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		us := newUsers(10)
		a := &aTable{unowned: us[3].key, until: time.Now().Add(4 * time.Second)}
		c := runLoad(t, Config{Users: 10, Rate: 100}, a, func(*aServer) {})
		late := c.Requests - c.prompt // about a tenth of those of three seconds
		if c.Requests < 990 || late < 15 || late > 50 || c.Failures != 0 {
			t.Errorf("%d of %d requests were late, %d failed", late, c.Requests, c.Failures)
		}
		if c.P99Millis < 2000 || c.MedianMillis > 1 {
			t.Errorf("half within %v ms, 99 of 100 within %v ms", c.MedianMillis, c.P99Millis)
		}
		if c.WithoutOwnerSeconds < 3 || c.WithoutOwnerSeconds > 4 {
			t.Errorf("tried for %v s", c.WithoutOwnerSeconds)
		}
		if passed := c.Requests - c.firstTry; passed < late {
			t.Errorf("%d requests did not succeed at once, but %d were late", passed, late)
		}
	})
}

// TestSilentLossesAreDetected: a loss without a notice in time is a silent loss.
func TestSilentLossesAreDetected(t *testing.T) {
	all := leasehold.Loss{Range: leasehold.All, Cause: leasehold.CauseExpired}
	for _, test := range []struct {
		name   string
		losses func(a *aTable)
		silent bool
	}{
		{"no notice", func(*aTable) {}, true},
		{"immediate notice", func(a *aTable) { a.losses <- all }, false},
		{"late notice", func(a *aTable) { proc.Pause(context.Background(), noticeTimeout/2); a.losses <- all }, false},
		{"notice after the timeout", func(a *aTable) { proc.Pause(context.Background(), 2*noticeTimeout); a.losses <- all }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &aTable{losses: make(chan leasehold.Loss, 1)}
				c := runLoad(t, Config{Users: 20, Rate: 100}, a, func(s *aServer) {
					s.clear()
					test.losses(a)
				})
				if (c.SilentLosses > 0) != test.silent || c.SilentLosses > 20 {
					t.Errorf("%d silent losses", c.SilentLosses)
				}
				if c.StaleAnswers != 0 || (c.Republished > 0) != (c.Losses > 0) {
					t.Errorf("got %+v", c)
				}
			})
		})
	}
}

// TestEarlyNoticeExplainsLoss: a notice that arrives before the response of an older request
// explains the loss.
func TestEarlyNoticeExplainsLoss(t *testing.T) {
	ta, u, now := newTally(), &user{}, time.Now()
	u.lost.Store(true)
	ta.explain(u)
	ta.suspect(u, now)
	if n := ta.suspected(now); n != 0 {
		t.Errorf("%d suspected", n)
	}
	u.lost.Store(false)
	ta.suspect(u, now)
	ta.suspect(u, now.Add(noticeTimeout-1)) // the same loss again
	if ta.suspected(now) != 1 || ta.suspected(now.Add(noticeTimeout)) != 0 || ta.sum().SilentLosses != 1 {
		t.Error("an unexplained loss was not counted exactly once")
	}
}

// TestUnavailabilityIsMeasured: keys are unavailable for 40 ms. The measured duration exceeds that
// by at most two probe intervals.
func TestUnavailabilityIsMeasured(t *testing.T) {
	const away = 40 * time.Millisecond
	for _, test := range []struct {
		name    string
		happens func(*load, *aTable, *aServer)
		times   uint64
	}{
		{"a key has no owner", func(l *load, a *aTable, _ *aServer) { a.takeAway(l.users[9].key, away) }, 1},
		{"a server restarts", func(_ *load, _ *aTable, s *aServer) {
			s.setDown(true)
			proc.Pause(context.Background(), away)
			s.setDown(false)
		}, 50},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &aTable{}
				l, server := newTestLoad(&Config{Users: 50, ValueSize: 1}, a)
				p := newProber(l)
				probing, stop := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { p.run(probing) })
				proc.Pause(t.Context(), 101*time.Millisecond)
				test.happens(l, a, server)
				proc.Pause(t.Context(), time.Second)
				stop()
				running.Wait()
				got := p.unavailability()
				if got.Keys != 50 || got.Times != test.times {
					t.Errorf("got %+v", got)
				}
				if got.Median < millis(away) || got.Max > millis(away+2*p.interval) {
					t.Errorf("measured %v and %v ms, want %v or a little more", got.Median, got.Max, away)
				}
			})
		})
	}
}
