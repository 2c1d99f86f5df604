package owner

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
)

// A laptop can be suspended, and its wall clock can be set.
type laptop struct{ slept, set atomic.Int64 }

func (l *laptop) Offset() time.Duration            { return time.Duration(l.slept.Load() + l.set.Load()) }
func (l *laptop) Suspended() (time.Duration, bool) { return time.Duration(l.slept.Load()), true }
func (l *laptop) Tolerance() time.Duration         { return time.Millisecond }
func (l *laptop) suspend(d time.Duration)          { l.slept.Add(int64(d)) }
func (l *laptop) setClock(d time.Duration)         { l.set.Add(int64(d)) }

// After a suspension of the computer the first check ends all leases,
// although the clock stood still (DESIGN of internal/runtime/clock), and the owner gets new ones.
func TestSuspensionOfComputerEndsLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.lead(manager.Config{})
		cfg := n.config("10.0.0.1:8080")
		var events eventLog
		cfg.OnRevoke = func(_ []leasehold.Lease, c leasehold.Cause) { events.add("revoked: " + c.String()) }
		cfg.Logger = events.logger()
		computer, c := &laptop{}, clock.New()
		o, err := newOwner(cfg, c, clock.NewDetectorOf(c, computer))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.join(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		lease, ok := o.Check(42)
		if !ok {
			t.Fatal("holds nothing")
		}

		computer.suspend(time.Hour)
		// Longer than the interval of the detector's checks, and far shorter than
		// a lease.
		time.Sleep(20 * time.Microsecond)
		if o.Held(lease) {
			t.Error("the first check after a suspension succeeds")
		}
		synctest.Wait()
		if events.count("revoked: expired") != 1 || events.count("the computer was suspended") != 1 {
			t.Errorf("events %q", events.lines)
		}

		time.Sleep(20 * time.Second)
		again, ok := o.Check(42)
		if !ok || again.Generation <= lease.Generation || o.Held(lease) {
			t.Errorf("after the suspension: %v, %t; before: %v", again, ok, lease)
		}

		computer.suspend(time.Hour) // without a check
		time.Sleep(1100 * time.Millisecond)
		if events.count("revoked: expired") != 2 {
			t.Errorf("after a suspension without a check: events %q", events.lines)
		}
		if err := o.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Steps of the wall clock by an hour in both directions cost no lease: only
// the monotonic clock counts.
func TestWallClockStepsCostNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.lead(manager.Config{})
		cfg := n.config("10.0.0.1:8080")
		var events eventLog
		cfg.OnRevoke = func(_ []leasehold.Lease, c leasehold.Cause) { events.add("revoked: " + c.String()) }
		cfg.Logger = events.logger()
		computer, c := &laptop{}, clock.New()
		o, err := newOwner(cfg, c, clock.NewDetectorOf(c, computer))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.join(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		lease, ok := o.Check(42)
		if !ok {
			t.Fatal("holds nothing")
		}
		for i := range 24 {
			by := time.Hour
			if i%3 == 2 {
				by = -2 * time.Hour
			}
			computer.setClock(by)
			time.Sleep(3 * time.Second)
			if !o.Held(lease) {
				t.Fatalf("the lease is lost after a step of the wall clock by %v: %q", by, events.lines)
			}
		}
		if events.count("revoked") != 0 || events.count("suspended") != 0 {
			t.Errorf("events %q", events.lines)
		}
		if err := o.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func newMachine(t *testing.T) *machine.Machine {
	t.Helper()
	cfg := Config{Namespace: testNamespace, Name: "server-1", Addr: "10.0.0.1:8080", Weight: 1}
	holder, err := cfg.holder()
	if err != nil {
		t.Fatal(err)
	}
	m, err := machine.New(0, machine.Config{Namespace: testNamespace, Holder: holder, Rand: rand.New(rand.NewPCG(1, 2))})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A view that the machine publishes after a suspension and before its Slept event is not valid:
// the reply may have been in flight during the suspension.
func TestViewPublishedBeforeSleptIsInvalid(t *testing.T) {
	o := holder64()
	computer := &laptop{}
	o.detector = clock.NewDetectorOf(o.clock, computer)
	lease, ok := o.Check(1)
	if !ok {
		t.Fatal("holds nothing")
	}
	computer.suspend(time.Minute)
	for deadline := o.clock.Now().Add(20 * time.Microsecond); o.clock.Now() < deadline; {
		continue // until the detector checks again
	}
	if o.Held(lease) {
		t.Error("the first check after a sleep succeeds")
	}
	o.machine = newSession(newMachine(t), o.detector, nil) // has processed no Slept event
	view := &machine.View{Leases: o.holding.Load().areas.held, Until: mono.Never}
	o.publish(view)
	if _, ok := o.Check(1); ok || o.Held(lease) || o.Leases() != nil {
		t.Error("a lease from before the suspension is held")
	}
	o.machine.Advance(o.clock.Now()) // processes the Slept event
	o.publish(view)
	if _, ok := o.Check(1); !ok {
		t.Error("a lease from after the suspension is not held")
	}
}
