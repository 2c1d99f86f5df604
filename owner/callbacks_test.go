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

// Whatever is held in between: an application that adds what is granted and
// removes what is revoked has what is held. Every lease that has ended is told,
// with a reason, also one that the application was not told the beginning of,
// because it may have found it with Check. Nothing that is held is told as ended.
func TestCallbacksLeaveNothingOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var app, owed []leasehold.Lease // what the application has, and ends that it has not been told
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
			c.change(next, nil, []revocation{{ended, leasehold.CauseReleased}}, false)
			if rapid.Bool().Draw(t, "many") {
				c.passed.merge(c.held, nil)
			}
			if rapid.Bool().Draw(t, "fast") {
				hear()
			}
			if len(c.causes) > len(c.told) {
				t.Fatalf("%d reasons are kept for %d leases", len(c.causes), len(c.told))
			}
		}
		hear()
		if missing, extra := protocol.Missing(c.held, app), protocol.Missing(app, c.held); len(missing)+len(extra) > 0 {
			t.Fatalf("the application lacks %v and believes to have %v", missing, extra)
		}
	})
}

// drawNext draws leases to follow on those that are held: some go on, as far as
// nothing new is in their place, and as in life a generation is granted once.
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

// checkRevocations checks that they have reasons, cover all that is owed, and
// nothing that is held.
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
			t.Fatalf("%v ended, and nobody was told of %v", o, rest)
		}
	}
	for _, r := range revoked {
		if r.cause == leasehold.CauseUnknown {
			t.Fatalf("%v ended for no reason", r.leases)
		}
		for _, l := range r.leases {
			if i := slices.IndexFunc(held, func(h leasehold.Lease) bool { return h.Generation <= l.Generation && h.Range.Overlaps(l.Range) }); i >= 0 {
				t.Fatalf("%v is told to have ended, and %v is held", l, held[i])
			}
		}
	}
}

func byStart(a, b leasehold.Lease) int { return cmp.Compare(a.Range.Start, b.Range.Start) }

func lease(start leasehold.Key, g leasehold.Generation) leasehold.Lease {
	return leasehold.Lease{Range: leasehold.Range{Start: start, Limit: start + 10}, Generation: g}
}

// Ends are told before beginnings, each with its reason, and those of leases
// that came and went as well.
func TestCallbacksOrder(t *testing.T) {
	c := newCallbacks(&Config{}, nil)
	c.change([]leasehold.Lease{lease(0, 1), lease(10, 2), lease(20, 3), lease(30, 4)}, nil, nil, false)
	c.difference()
	c.change([]leasehold.Lease{lease(10, 2), lease(20, 5), lease(30, 4)}, nil,
		[]revocation{{[]leasehold.Lease{lease(0, 1), lease(20, 3)}, leasehold.CauseReleased}}, false)
	c.change([]leasehold.Lease{lease(20, 6), lease(30, 4)}, nil,
		[]revocation{{[]leasehold.Lease{lease(10, 2), lease(20, 5)}, leasehold.CauseExpired}}, false)
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
		t.Errorf("told twice: %v", got)
	}
}

// Whoever sees that a lease is gone sees why, however the two goroutines
// interleave.
func TestCausesAreNotLost(t *testing.T) {
	var unexplained int
	c := newCallbacks(&Config{OnRevoke: func(leases []leasehold.Lease, cause leasehold.Cause) {
		if cause != leasehold.CauseExpired {
			unexplained += len(leases)
		}
	}}, nil)
	c.start()
	for g := range leasehold.Generation(2000) {
		held := []leasehold.Lease{lease(0, g+1)}
		c.change(held, nil, nil, false)
		c.change(nil, nil, []revocation{{held, leasehold.CauseExpired}}, false)
	}
	if err := c.stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if unexplained > 0 {
		t.Errorf("%d leases ended for no reason", unexplained)
	}
}

// A callback that hangs is named in the log, and delays nothing else.
func TestHangingCallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		_, stop := n.lead(manager.Config{})
		cfg := n.config("10.0.0.1:8080")
		var told diary
		hang := make(chan struct{})
		cfg.OnGrant = func([]leasehold.Lease) { <-hang }
		cfg.OnRevoke = func(_ []leasehold.Lease, c leasehold.Cause) { told.add("revoked: " + c.String()) }
		cfg.Logger = told.logger()
		o := mustJoin(t, cfg)
		time.Sleep(time.Minute)
		if holds(o) != 256 {
			t.Error("leases were not renewed while a callback hung")
		}
		if told.count("callback=OnGrant") != 1 {
			t.Errorf("the log does not name the callback that hangs: %q", told.lines)
		}
		stop()
		time.Sleep(time.Minute)
		if holds(o) != 0 || told.count("revoked") != 0 {
			t.Errorf("leases did not end while a callback hung: %q", told.lines)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := o.Close(ctx); !errors.Is(err, leasehold.ErrUnavailable) {
			t.Errorf("Close: %v", err)
		}
		close(hang)
		synctest.Wait()
		if told.count("revoked: left") != 1 {
			t.Errorf("the application was not told of the end: %q", told.lines)
		}
		if told.count("has returned at last") != 1 {
			t.Errorf("the log does not say that the callback has returned: %q", told.lines)
		}
	})
}

// Close names the callback that it cannot wait for.
func TestCloseWithAHangingCallback(t *testing.T) {
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
