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
	"github.com/leasehold-dev/leasehold/internal/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/protocol"
)

// Whatever is held in between, an application that adds what is granted and
// removes what is revoked has what is held, and is never told of an end without
// a reason or of one that it did not know the beginning of.
func TestCallbacksLeaveNothingOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var app []leasehold.Lease
		c := newCallbacks(&Config{}, nil)
		hear := func() {
			d := c.difference()
			for _, r := range d.revoked {
				if r.cause == leasehold.CauseUnknown {
					t.Fatalf("%v ended for no reason", r.leases)
				}
				for _, l := range r.leases {
					if rest := protocol.Missing([]leasehold.Lease{l}, app); len(rest) > 0 {
						t.Fatalf("%v ended, and had never begun", rest)
					}
					app = protocol.Missing(app, []leasehold.Lease{l})
				}
			}
			app = append(app, d.granted...)
			slices.SortFunc(app, byStart)
		}
		newest := leasehold.Generation(0)
		for range rapid.IntRange(1, 10).Draw(t, "steps") {
			next := drawLeases(t)
			for i := range next { // as in life, a generation is granted once
				next[i].Generation += newest
			}
			newest += 20
			// Some leases go on, as far as nothing new is in their place.
			for _, l := range c.held {
				if rapid.Bool().Draw(t, "stays") && !slices.ContainsFunc(next, func(n leasehold.Lease) bool { return n.Range.Overlaps(l.Range) }) {
					next = append(next, l)
				}
			}
			slices.SortFunc(next, byStart)
			c.because(protocol.Missing(c.held, next), leasehold.CauseReleased)
			c.tell(next)
			if rapid.Bool().Draw(t, "fast") {
				hear()
			}
			if most := 2*len(c.told) + 20; len(c.causes) > most {
				t.Fatalf("%d reasons are kept for %d leases", len(c.causes), len(c.told))
			}
		}
		hear()
		if missing, extra := protocol.Missing(c.held, app), protocol.Missing(app, c.held); len(missing)+len(extra) > 0 {
			t.Fatalf("the application lacks %v and believes to have %v", missing, extra)
		}
	})
}

func byStart(a, b leasehold.Lease) int { return cmp.Compare(a.Range.Start, b.Range.Start) }

// Ends are told before beginnings, each with its reason.
func TestCallbacksOrder(t *testing.T) {
	lease := func(start leasehold.Key, g leasehold.Generation) leasehold.Lease {
		return leasehold.Lease{Range: leasehold.Range{Start: start, Limit: start + 10}, Generation: g}
	}
	c := newCallbacks(&Config{}, nil)
	c.tell([]leasehold.Lease{lease(0, 1), lease(10, 2), lease(20, 3), lease(30, 4)})
	c.difference()
	c.because([]leasehold.Lease{lease(0, 1), lease(20, 3)}, leasehold.CauseReleased)
	c.tell([]leasehold.Lease{lease(10, 2), lease(20, 5), lease(30, 4)})
	c.because([]leasehold.Lease{lease(10, 2), lease(20, 5)}, leasehold.CauseExpired)
	c.tell([]leasehold.Lease{lease(20, 6), lease(30, 4)})
	want := difference{
		revoked: []revocation{
			{[]leasehold.Lease{lease(0, 1), lease(20, 3)}, leasehold.CauseReleased},
			{[]leasehold.Lease{lease(10, 2)}, leasehold.CauseExpired},
		},
		granted: []leasehold.Lease{lease(20, 6)}, // generation 5 came and went
	}
	if diff := gocmp.Diff(want, c.difference(), gocmp.AllowUnexported(difference{}, revocation{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := c.difference(); len(got.revoked)+len(got.granted) != 0 {
		t.Errorf("told twice: %v", got)
	}
}

// An application that hangs for ever costs a bounded amount of memory.
func TestCausesAreBounded(t *testing.T) {
	c := newCallbacks(&Config{}, nil)
	for g := range leasehold.Generation(1000) {
		held := []leasehold.Lease{{Generation: g + 1}}
		c.because(c.held, leasehold.CauseReleased)
		c.tell(held)
		if len(c.causes) > 4 {
			t.Fatalf("%d reasons are kept for one lease", len(c.causes))
		}
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
		if err := o.Close(ctx); !errors.Is(err, leasehold.Unavailable) {
			t.Errorf("Close: %v", err)
		}
		close(hang)
		synctest.Wait()
		if told.count("revoked: expired") != 1 {
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
		wantError(t, o.Close(ctx), leasehold.Unavailable, "OnRevoke", "has not returned")
		close(hang)
	})
}
