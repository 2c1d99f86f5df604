package owner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// mustJoin joins and waits for the leader's grants.
func mustJoin(t *testing.T, cfg Config) *Owner {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	o, err := Join(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close(ctx) }) // for tests that fail before Close
	time.Sleep(time.Second)
	synctest.Wait()
	return o
}

func TestOwnerLifecycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		leader, _ := n.lead(manager.Config{})
		cfg := n.config("10.0.0.1:8080")
		var events eventLog
		cfg.OnGrant = func(l []leasehold.Lease) { events.add("granted") }
		cfg.OnRevoke = func(l []leasehold.Lease, c leasehold.Cause) { events.add("revoked: " + c.String()) }
		o := mustJoin(t, cfg)

		if o.Name() != "10.0.0.1:8080" || o.Session().IsZero() {
			t.Errorf("name %q, session %v", o.Name(), o.Session())
		}
		if got := holds(o); got != 256 {
			t.Fatalf("the only owner holds %d of 256 keys", got)
		}
		lease, ok := o.Check(42)
		if !ok || !lease.Range.Contains(42) || lease.Generation == 0 || lease.Key != 42 {
			t.Errorf("Check: %v, %t", lease, ok)
		}
		if len(o.Leases()) == 0 || events.count("granted") != 1 {
			t.Errorf("%d leases, events %q", len(o.Leases()), events.lines)
		}
		time.Sleep(time.Minute) // six lease times
		if !o.Held(lease) {
			t.Error("the lease was not renewed")
		}
		other := lease
		other.Generation++
		if o.Held(other) || o.Held(Lease{Key: 42}) {
			t.Error("Held of an unknown lease is true")
		}

		if err := o.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
		if holds(o) != 0 || o.Held(lease) || o.Leases() != nil {
			t.Error("leases outlive Close")
		}
		if events.count("revoked: left") != 1 || len(events.lines) != 2 {
			t.Errorf("events %q", events.lines)
		}
		if leader.committed("(left)") == 0 {
			t.Errorf("the leader has not recorded the leave: %q", leader.changes)
		}
		if err := o.Close(t.Context()); err != nil {
			t.Errorf("second Close: %v", err)
		}
		select {
		case <-o.Done():
		default:
			t.Error("Done is open after Close")
		}
	})
}

// Every key has one owner across joins and leaves, and leases on keys that
// do not move are held without a gap.
func TestOwnersShareTheKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.lead(manager.Config{})
		a := mustJoin(t, n.config("10.0.0.1:8080"))
		before := make(map[leasehold.Key]Lease)
		for _, k := range keys() {
			before[k], _ = a.Check(k)
		}
		b := mustJoin(t, n.config("10.0.0.2:8080"))
		kept := 0
		for _, k := range keys() {
			_, byA := a.Check(k)
			_, byB := b.Check(k)
			if byA == byB {
				t.Fatalf("key %v: held by a %t, by b %t", k, byA, byB)
			}
			if a.Held(before[k]) != byA {
				t.Fatalf("key %v: held %t, checked %t: what stays keeps its generation", k, !byA, byA)
			}
			if byA {
				kept++
			}
		}
		if kept == 0 || kept == 256 {
			t.Errorf("the first owner keeps %d of 256 keys", kept)
		}
		if err := a.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := holds(b); got != 256 {
			t.Errorf("the last owner holds %d of 256 keys a second after the other has left", got)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// Without a leader, leases are suspended at their deadline; a new leader resumes them.
func TestLeasesAreSuspendedWithoutLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		leader, stop := n.lead(manager.Config{})
		cfg := n.config("10.0.0.1:8080")
		var events eventLog
		cfg.OnRevoke = func(l []leasehold.Lease, c leasehold.Cause) { events.add("revoked: " + c.String()) }
		cfg.Logger = events.logger()
		o := mustJoin(t, cfg)
		lease, _ := o.Check(42)
		stop()
		time.Sleep(7 * time.Second)
		if !o.Held(lease) {
			t.Error("the lease is suspended before its deadline: it is renewed every 2.5 s and lasts 10 s")
		}
		time.Sleep(3 * time.Second)
		if o.Held(lease) || holds(o) != 0 {
			t.Error("the lease is held after its deadline")
		}
		synctest.Wait()
		if events.count("revoked") != 0 || events.count("level=WARN msg=\"1 lease suspended: no leader replied") != 1 {
			t.Errorf("events %q", events.lines)
		}

		n.serve(leaderAddr, leader)
		time.Sleep(15 * time.Second)
		again, ok := o.Check(42)
		if !ok || again != lease || !o.Held(lease) || events.count("level=INFO msg=\"1 suspended lease resumed") != 1 {
			t.Errorf("with a leader again: %v, %t; before: %v; events %q", again, ok, lease, events.lines)
		}
		if err := o.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// Close without a leader ends the owner and returns an error.
func TestCloseWithoutLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		_, stop := n.lead(manager.Config{})
		o := mustJoin(t, n.config("10.0.0.1:8080"))
		stop()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		err := o.Close(ctx)
		if !errors.Is(err, leasehold.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), leaderAddr) {
			t.Errorf("Close: %v", err)
		}
		if holds(o) != 0 {
			t.Error("leases outlive Close")
		}
		if again := o.Close(t.Context()); !errors.Is(again, leasehold.ErrUnavailable) {
			t.Errorf("second Close: %v, want the error of the first", again)
		}
	})
}

// Close without a leader ends when the leases have expired, also with a Mover.
func TestCloseWithoutLeaderEnds(t *testing.T) {
	for _, moves := range []bool{false, true} {
		t.Run(fmt.Sprintf("moves %v", moves), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				_, stop := n.lead(manager.Config{Moves: 1})
				const addr = "10.0.0.1:8080"
				cfg := n.config(addr)
				if moves {
					cfg.Mover = n.mover(addr)
					cfg.Mover.Export, cfg.Mover.Import = noExport, noImport
				}
				o := mustJoin(t, cfg)
				stop()
				begun := time.Now()
				err := o.Close(context.Background())
				if !errors.Is(err, leasehold.ErrUnavailable) || !strings.Contains(err.Error(), "before they expired") || !strings.Contains(err.Error(), leaderAddr) {
					t.Errorf("Close: %v", err)
				}
				if took := time.Since(begun); took > 30*time.Second {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

// With an expired context Close still releases all leases.
func TestCloseAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.lead(manager.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 16 { // for different interleavings
			o := mustJoin(t, n.config("10.0.0.1:8080"))
			calm := make(chan struct{})
			go func() { _ = o.driver.Do(t.Context(), func(mono.Instant) { <-calm }) }()
			synctest.Wait() // the machine is busy
			go func() { _ = o.Close(ctx) }()
			synctest.Wait()
			close(calm)
			<-o.Done()
			if err := o.Close(ctx); err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("Close: %v", err)
			}
			if holds(o) != 0 {
				t.Error("leases outlive Close")
			}
			time.Sleep(time.Minute) // until the leader has expired it
		}
	})
}
