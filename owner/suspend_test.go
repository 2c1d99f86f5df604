package owner

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"pgregory.net/rapid"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
)

// calls records every callback with its number of leases.
func (d *eventLog) calls(cfg *Config) {
	cfg.OnGrant = func(l []leasehold.Lease) { d.add(fmt.Sprint("granted ", len(l))) }
	cfg.OnRevoke = func(l []leasehold.Lease, c leasehold.Cause) { d.add(fmt.Sprint("revoked ", len(l), ": ", c)) }
	cfg.OnSuspend = func(l []leasehold.Lease) { d.add(fmt.Sprint("suspended ", len(l))) }
	cfg.OnResume = func(l []leasehold.Lease) { d.add(fmt.Sprint("resumed ", len(l))) }
}

func (d *eventLog) want(t *testing.T, lines ...string) {
	t.Helper()
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	if diff := gocmp.Diff(lines, d.lines); diff != "" {
		t.Errorf("callbacks (-want +got):\n%s", diff)
	}
}

// DESIGN 5: an outage of the managers, of any length, suspends leases. Nothing is revoked,
// and the same generations are held afterwards.
func TestOutageSuspends(t *testing.T) {
	for _, outage := range []time.Duration{30 * time.Second, 24 * time.Hour} {
		if testing.Short() && outage > time.Hour {
			continue
		}
		t.Run(outage.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				l, stop := n.lead(manager.Config{})
				cfg := n.config("10.0.0.1:8080")
				var events eventLog
				events.calls(&cfg)
				o := mustJoin(t, cfg)
				lease, ok := o.Check(42)
				if !ok || o.Suspended(42) || !is(o.Status(), Status{Held: 1}) {
					t.Fatalf("held: %t, %+v", ok, o.Status())
				}
				ended := make(chan bool, 1)
				go func() { ended <- o.AwaitEnd(t.Context(), lease) == nil }()
				stop()
				begun := time.Now()
				time.Sleep(outage)
				if _, ok := o.Check(42); ok || o.Held(lease) || len(o.Leases()) > 0 {
					t.Error("a suspended lease is held")
				}
				if kept := o.SuspendedLeases(); len(kept) != 1 || kept[0] != lease.Lease {
					t.Errorf("%v is suspended, want %v", kept, lease)
				}
				s := o.Status()
				if since := s.SuspendedSince.Sub(begun); !o.Suspended(42) || s.State != StateSuspended || s.Held != 0 || s.Suspended != 1 || since <= 0 || since > 10*time.Second {
					t.Errorf("status %+v, suspended %v after the outage began", s, since)
				}
				begun = time.Now()
				if err := o.Await(t.Context(), 42); !errors.Is(err, leasehold.ErrSuspended) || time.Since(begun) > 0 {
					t.Errorf("Await returns %v for a suspended lease, after %v", err, time.Since(begun))
				}
				events.want(t, "granted 1", "suspended 1")

				n.serve(leaderAddr, l)
				time.Sleep(20 * time.Second)
				if again, ok := o.Check(42); !ok || again != lease || !o.Held(lease) || o.Suspended(42) || len(o.SuspendedLeases()) > 0 {
					t.Errorf("after the outage %v is held, %t; want %v", again, ok, lease)
				}
				events.want(t, "granted 1", "suspended 1", "resumed 1")
				select {
				case <-ended:
					t.Error("AwaitEnd returns for a suspended lease")
				default:
				}
				if err := o.Close(t.Context()); err != nil || !<-ended {
					t.Errorf("AwaitEnd after Close: %v", err)
				}
				if s := o.Status(); !is(s, Status{State: StateEnded}) {
					t.Errorf("after Close: %+v", s)
				}
				events.want(t, "granted 1", "suspended 1", "resumed 1", "revoked 1: left")
			})
		})
	}
}

// gated adds a switch that partitions one owner from the managers.
func (n *network) gated(cfg *Config) (cut *atomic.Bool) {
	cut = new(atomic.Bool)
	cfg.DialOptions = []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
		if cut.Load() {
			return nil, errors.New("cut off")
		}
		conn, err := n.dial(ctx, addr)
		return &gatedConn{conn, cut}, err
	})}
	return cut
}

type gatedConn struct {
	net.Conn
	cut *atomic.Bool
}

func (c *gatedConn) Write(b []byte) (int, error) {
	if c.cut.Load() {
		return 0, errors.Join(errors.New("cut off"), c.Close()) // as in a real connection, reads fail, too
	}
	return c.Conn.Write(b)
}

// A suspended lease whose range was granted to another owner ends, and is not resumed.
func TestSuspendedLeaseEndsIfRangeWasGranted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.lead(manager.Config{})
		cfg := n.config("10.0.0.1:8080")
		var events eventLog
		events.calls(&cfg)
		cut := n.gated(&cfg)
		a := mustJoin(t, cfg)
		lease, ok := a.Check(42)
		if !ok {
			t.Fatal("a holds nothing")
		}
		cut.Store(true)
		time.Sleep(11 * time.Second)
		events.want(t, "granted 1", "suspended 1")
		b := mustJoin(t, n.config("10.0.0.2:8080"))
		ended := make(chan bool, 1)
		go func() { ended <- a.AwaitEnd(t.Context(), lease) == nil }()
		time.Sleep(30 * time.Second)
		if holds(b) != len(keys()) || !a.Suspended(42) {
			t.Fatalf("b holds %d of %d, a is suspended: %t", holds(b), len(keys()), a.Suspended(42))
		}
		cut.Store(false)
		time.Sleep(20 * time.Second)
		if !<-ended || a.Suspended(42) || a.Held(lease) {
			t.Error("a range that was granted to b is suspended at a")
		}
		if events.count("revoked 1: expired") != 1 || events.count("resumed") != 0 {
			t.Errorf("events %q", events.lines)
		}
		for _, o := range []*Owner{b, a} {
			if err := o.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestKeepSuspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		_, stop := n.lead(manager.Config{})
		cfg := n.config("10.0.0.1:8080")
		cfg.KeepSuspended = time.Hour
		var events eventLog
		events.calls(&cfg)
		o := mustJoin(t, cfg)
		lease, _ := o.Check(42)
		stop()
		time.Sleep(time.Hour)
		events.want(t, "granted 1", "suspended 1")
		begun := time.Now()
		if o.AwaitEnd(t.Context(), lease) != nil || time.Since(begun) > 10*time.Second || o.Suspended(42) {
			t.Errorf("the leases end %v after an hour", time.Since(begun))
		}
		events.want(t, "granted 1", "suspended 1", "revoked 1: expired")
		_ = o.Close(t.Context()) // there is no leader
	})
	cfg := newNetwork(t).config("10.0.0.1:8080")
	cfg.KeepSuspended = -1
	if err := cfg.validate(); !errors.Is(err, leasehold.ErrInvalid) || !strings.Contains(err.Error(), "KeepSuspended") {
		t.Errorf("a negative time: %v", err)
	}
}

// After a suspension of the computer its memory may be older than the state that its session has
// confirmed: all leases end, suspended or not.
func TestSuspensionOfComputerEndsSuspendedLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		_, stop := n.lead(manager.Config{})
		cfg := n.config("10.0.0.1:8080")
		var events eventLog
		events.calls(&cfg)
		computer, c := &laptop{}, clock.New()
		o, err := newOwner(cfg, c, clock.NewDetectorOf(c, computer))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.join(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		stop()
		time.Sleep(30 * time.Second)
		if !o.Suspended(42) {
			t.Fatal("no lease is suspended")
		}
		computer.suspend(time.Hour)
		time.Sleep(20 * time.Microsecond)
		if o.Suspended(42) || !is(o.Status(), Status{}) {
			t.Errorf("after the suspension of the computer: %+v", o.Status())
		}
		time.Sleep(2 * time.Second)
		events.want(t, "granted 1", "suspended 1", "revoked 1: expired")
		_ = o.Close(t.Context()) // there is no leader
	})
}

// Close during an outage loses the state and returns an error.
func TestCloseWhileSuspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		_, stop := n.lead(manager.Config{})
		cfg := n.config("10.0.0.1:8080")
		cfg.Mover = n.mover("10.0.0.1:8081")
		cfg.Mover.Export = func(context.Context, *Export) error { return nil }
		cfg.Mover.Import = func(context.Context, *Import) (func(leasehold.Lease), error) { return nil, nil }
		o := mustJoin(t, cfg)
		stop()
		time.Sleep(30 * time.Second)
		if err := o.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "the state of 1 range is lost: no leader replies") {
			t.Errorf("got %v", err)
		}
	})
}

func sorted(leases []leasehold.Lease) []leasehold.Lease {
	slices.SortFunc(leases, byStart)
	return leases
}

// For slow callbacks: an application that follows them has at the end the right set
// of suspended leases, and OnSuspend never receives a lease that it does
// not have.
func TestCallbacksReportSuspensions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var app, suspended []leasehold.Lease
		c := newCallbacks(&Config{}, nil)
		hear := func() {
			d := c.difference()
			for _, r := range d.revoked {
				app, suspended = protocol.Missing(app, r.leases), protocol.Missing(suspended, r.leases)
			}
			if strange := protocol.Missing(d.resumed, suspended); len(strange) > 0 {
				t.Fatalf("%v is resumed, but was not suspended", strange)
			}
			suspended = protocol.Missing(suspended, d.resumed)
			app = sorted(append(app, d.granted...))
			if strange := protocol.Missing(d.suspended, app); len(strange) > 0 {
				t.Fatalf("%v is suspended, but was not granted", strange)
			}
			suspended = sorted(append(suspended, d.suspended...))
		}
		newest := leasehold.Generation(0)
		for range rapid.IntRange(1, 10).Draw(t, "steps") {
			next := drawNext(t, c.held, newest)
			newest += 20
			unserved := slices.DeleteFunc(slices.Clone(next), func(leasehold.Lease) bool { return rapid.Bool().Draw(t, "served") })
			c.change(next, unserved, nil, []revocation{{protocol.Missing(c.held, next), leasehold.CauseReleased}})
			if rapid.Bool().Draw(t, "fast") {
				hear()
			}
		}
		hear()
		want := c.suspended
		if len(protocol.Missing(want, suspended))+len(protocol.Missing(suspended, want)) > 0 {
			t.Fatalf("suspended leases of the application are %v, want %v", suspended, want)
		}
	})
}

// is compares statuses without their times. A leader has replied before Join returned.
func is(got, want Status) bool {
	return got.State == want.State && got.Held == want.Held && got.Suspended == want.Suspended && !got.LastContact.IsZero() &&
		time.Since(got.LastContact) < time.Hour
}
