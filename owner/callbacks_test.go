package owner

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// For any sequence of holdings, an application that adds granted leases and
// removes revoked ones has exactly the held leases. The end of every lease is reported
// with its cause, including a lease whose grant was not reported,
// because Check may have returned it. No held lease is reported as ended.
func TestCallbacksAreComplete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var app, owed []leasehold.Lease // leases of the application, and ends that were not reported yet
		c := newCallbacks(&Config{}, nil)
		hear := func() {
			d := c.difference()
			checkRevocations(t, d.revoked, owed, c.held)
			owed = nil
			for _, r := range d.revoked {
				for _, l := range r.leases {
					app = protocol.Missing(app, []leasehold.Lease{l})
				}
			}
			app = append(app, d.granted...)
			slices.SortFunc(app, byStart)
		}
		newest := leasehold.Generation(0)
		for range rapid.IntRange(1, 10).Draw(t, "steps") {
			next := drawNext(t, c.held, newest)
			newest += 20
			ended := protocol.Missing(c.held, next)
			owed = append(owed, ended...)
			c.change(next, nil, nil, []revocation{{ended, leasehold.CauseReleased}})
			if rapid.Bool().Draw(t, "many") {
				c.unreported.merge(c.held, nil)
			}
			if rapid.Bool().Draw(t, "fast") {
				hear()
			}
			if len(c.causes) > len(c.notified) {
				t.Fatalf("%d causes are kept for %d leases", len(c.causes), len(c.notified))
			}
		}
		hear()
		if missing, extra := protocol.Missing(c.held, app), protocol.Missing(app, c.held); len(missing)+len(extra) > 0 {
			t.Fatalf("the application misses %v and has in addition %v", missing, extra)
		}
	})
}

// drawNext draws the next holding: some leases stay where
// no new one overlaps them, and every generation is granted once.
func drawNext(t *rapid.T, held []leasehold.Lease, newest leasehold.Generation) []leasehold.Lease {
	next := drawLeases(t)
	for i := range next {
		next[i].Generation += newest
	}
	for _, l := range held {
		if rapid.Bool().Draw(t, "stays") && !slices.ContainsFunc(next, func(n leasehold.Lease) bool { return n.Range.Overlaps(l.Range) }) {
			next = append(next, l)
		}
	}
	slices.SortFunc(next, byStart)
	return next
}

// Parts of a lease that end for different causes before a notification are not reported as moved, after which the
// application would assume that nothing was lost.
func TestPartOfLeaseMoves(t *testing.T) {
	parts := []leasehold.Lease{{Range: leasehold.Range{Limit: 50}, Generation: 5}, {Range: leasehold.Range{Start: 50, Limit: 100}, Generation: 5}}
	causes := []leasehold.Cause{leasehold.CauseExpired, leasehold.CauseMoved}
	for _, order := range [][2]int{{0, 1}, {1, 0}} {
		for _, granted := range []bool{false, true} { // reported before
			c := newCallbacks(&Config{}, nil)
			c.change([]leasehold.Lease{{Range: leasehold.Range{Limit: 100}, Generation: 5}}, nil, nil, nil)
			if granted {
				c.difference()
			}
			for n, i := range order {
				held := []leasehold.Lease{parts[order[1]]}[n:]
				c.change(held, nil, nil, []revocation{{[]leasehold.Lease{parts[i]}, causes[i]}})
			}
			c.unreported.merge(nil, nil)
			for _, r := range c.difference().revoked {
				if r.cause != leasehold.CauseExpired {
					t.Errorf("%v: the cause is %v", r.leases, r.cause)
				}
			}
		}
	}
}

// checkRevocations checks that all revocations have causes, cover all owed ends, and
// no held lease.
func checkRevocations(t *rapid.T, revoked []revocation, owed, held []leasehold.Lease) {
	for _, o := range owed {
		rest := []leasehold.Lease{{Range: o.Range}}
		for _, r := range revoked {
			for _, l := range r.leases {
				if l.Generation >= o.Generation {
					rest = protocol.Missing(rest, []leasehold.Lease{{Range: l.Range}})
				}
			}
		}
		if len(rest) > 0 {
			t.Fatalf("%v has ended, but %v was not reported", o, rest)
		}
	}
	for _, r := range revoked {
		if r.cause == leasehold.CauseUnknown {
			t.Fatalf("%v has ended without a cause", r.leases)
		}
		for _, l := range r.leases {
			if i := slices.IndexFunc(held, func(h leasehold.Lease) bool { return h.Generation <= l.Generation && h.Range.Overlaps(l.Range) }); i >= 0 {
				t.Fatalf("%v is reported as ended, but %v is held", l, held[i])
			}
		}
	}
}

func byStart(a, b leasehold.Lease) int { return cmp.Compare(a.Range.Start, b.Range.Start) }

func lease(start leasehold.Key, g leasehold.Generation) leasehold.Lease {
	return leasehold.Lease{Range: leasehold.Range{Start: start, Limit: start + 10}, Generation: g}
}

// Ends are reported before grants, each with its cause, including the ends of leases
// whose grant was not reported.
func TestCallbacksOrder(t *testing.T) {
	c := newCallbacks(&Config{}, nil)
	c.change([]leasehold.Lease{lease(0, 1), lease(10, 2), lease(20, 3), lease(30, 4)}, nil, nil, nil)
	c.difference()
	c.change([]leasehold.Lease{lease(10, 2), lease(20, 5), lease(30, 4)}, nil, nil,
		[]revocation{{[]leasehold.Lease{lease(0, 1), lease(20, 3)}, leasehold.CauseReleased}})
	c.change([]leasehold.Lease{lease(20, 6), lease(30, 4)}, nil, nil,
		[]revocation{{[]leasehold.Lease{lease(10, 2), lease(20, 5)}, leasehold.CauseExpired}})
	want := difference{
		revoked: []revocation{
			{[]leasehold.Lease{lease(0, 1), lease(20, 3)}, leasehold.CauseReleased},
			{[]leasehold.Lease{lease(10, 2), lease(20, 5)}, leasehold.CauseExpired},
		},
		granted: []leasehold.Lease{lease(20, 6)},
	}
	if diff := gocmp.Diff(want, c.difference(), gocmp.AllowUnexported(difference{}, revocation{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := c.difference(); len(got.revoked)+len(got.granted) != 0 {
		t.Errorf("reported twice: %v", got)
	}
}

// Every end is reported with its cause, for any interleaving of the two
// goroutines.
func TestEveryRevocationHasACause(t *testing.T) {
	var unexplained int
	c := newCallbacks(&Config{OnRevoke: func(leases []leasehold.Lease, cause leasehold.Cause) {
		if cause != leasehold.CauseExpired {
			unexplained += len(leases)
		}
	}}, nil)
	c.start()
	for g := range leasehold.Generation(2000) {
		held := []leasehold.Lease{lease(0, g+1)}
		c.change(held, nil, nil, nil)
		c.change(nil, nil, nil, []revocation{{held, leasehold.CauseExpired}})
	}
	if err := c.stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if unexplained > 0 {
		t.Errorf("%d leases ended without a cause", unexplained)
	}
}

// A callback that hangs is logged, and delays neither renewals nor the end of leases.
func TestHangingCallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		_, stop := n.lead(manager.Config{})
		cfg := n.config("10.0.0.1:8080")
		var events eventLog
		hang := make(chan struct{})
		cfg.OnGrant = func([]leasehold.Lease) { <-hang }
		cfg.OnRevoke = func(_ []leasehold.Lease, c leasehold.Cause) { events.add("revoked: " + c.String()) }
		cfg.Logger = events.logger()
		o := mustJoin(t, cfg)
		time.Sleep(time.Minute)
		if holds(o) != 256 {
			t.Error("the leases were not renewed while a callback hangs")
		}
		if events.count("callback=OnGrant") != 1 {
			t.Errorf("the log does not contain the callback that hangs: %q", events.lines)
		}
		stop()
		time.Sleep(time.Minute)
		if holds(o) != 0 || events.count("revoked") != 0 {
			t.Errorf("the leases have not ended while a callback hangs: %q", events.lines)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := o.Close(ctx); !errors.Is(err, leasehold.ErrUnavailable) {
			t.Errorf("Close: %v", err)
		}
		close(hang)
		synctest.Wait()
		if events.count("revoked: left") != 1 {
			t.Errorf("OnRevoke was not called: %q", events.lines)
		}
		if events.count("hanging callback has returned") != 1 {
			t.Errorf("the return of the callback is not logged: %q", events.lines)
		}
	})
}

// The error of Close contains the callback that hangs.
func TestCloseWithHangingCallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.lead(manager.Config{})
		cfg := n.config("10.0.0.1:8080")
		hang := make(chan struct{})
		cfg.OnRevoke = func([]leasehold.Lease, leasehold.Cause) { <-hang }
		o := mustJoin(t, cfg)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantError(t, o.Close(ctx), leasehold.ErrUnavailable, "OnRevoke", "has not returned")
		close(hang)
	})
}
