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

// laptop is a computer that can be suspended, and whose wall clock can be set.
type laptop struct{ slept, set atomic.Int64 }

func (l *laptop) Offset() time.Duration            { return time.Duration(l.slept.Load() + l.set.Load()) }
func (l *laptop) Suspended() (time.Duration, bool) { return time.Duration(l.slept.Load()), true }
func (l *laptop) Tolerance() time.Duration         { return time.Millisecond }
func (l *laptop) suspend(d time.Duration)          { l.slept.Add(int64(d)) }
func (l *laptop) setClock(d time.Duration)         { l.set.Add(int64(d)) }

// A computer that was suspended finds its leases gone with its first check,
// although its clock stood still (DESIGN of internal/runtime/clock), and gets new ones.
func TestSleepEndsAllLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.lead(manager.Config{})
		cfg := n.config("10.0.0.1:8080")
		var told diary
		cfg.OnRevoke = func(_ []leasehold.Lease, c leasehold.Cause) { told.add("revoked: " + c.String()) }
		cfg.Logger = told.logger()
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
		// Waking up takes longer than a look is trusted, and far less than a
		// lease lasts.
		time.Sleep(20 * time.Microsecond)
		if o.Held(lease) {
			t.Error("the first check after a sleep succeeds")
		}
		synctest.Wait()
		if told.count("revoked: expired") != 1 || told.count("the computer was suspended") != 1 {
			t.Errorf("told %q", told.lines)
		}

		time.Sleep(20 * time.Second)
		again, ok := o.Check(42)
		if !ok || again.Generation <= lease.Generation || o.Held(lease) {
			t.Errorf("some time after the sleep: %v, %t; before it: %v", again, ok, lease)
		}

		computer.suspend(time.Hour) // and nobody checks
		time.Sleep(1100 * time.Millisecond)
		if told.count("revoked: expired") != 2 {
			t.Errorf("a sleep that no check noticed: told %q", told.lines)
		}
		if err := o.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A wall clock that somebody sets, by an hour and either way, again and again, costs no lease: only
// the monotonic clock decides about those.
func TestSetClocksChangeNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.lead(manager.Config{})
		cfg := n.config("10.0.0.1:8080")
		var told diary
		cfg.OnRevoke = func(_ []leasehold.Lease, c leasehold.Cause) { told.add("revoked: " + c.String()) }
		cfg.Logger = told.logger()
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
				t.Fatalf("the lease is gone after the wall clock was set by %v: %q", by, told.lines)
			}
		}
		if told.count("revoked") != 0 || told.count("suspended") != 0 {
			t.Errorf("told %q", told.lines)
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

// A view that the machine publishes without knowing of a sleep is not believed:
// a reply may have been under way while the computer was suspended.
func TestWhatIsPublishedAfterASleepIsNotBelieved(t *testing.T) {
	o := holder64()
	computer := &laptop{}
	o.detector = clock.NewDetectorOf(o.clock, computer)
	lease, ok := o.Check(1)
	if !ok {
		t.Fatal("holds nothing")
	}
	computer.suspend(time.Minute)
	for deadline := o.clock.Now().Add(20 * time.Microsecond); o.clock.Now() < deadline; {
		continue // waking up takes at least that long
	}
	if o.Held(lease) {
		t.Error("the first check after a sleep succeeds")
	}
	o.machine = newSession(newMachine(t), o.detector, nil) // it knows of no sleep yet
	view := &machine.View{Leases: o.holding.Load().areas.held, Until: mono.Never}
	o.publish(view)
	if _, ok := o.Check(1); ok || o.Held(lease) || o.Leases() != nil {
		t.Error("a lease from before the sleep is believed")
	}
	o.machine.Advance(o.clock.Now()) // it is told
	o.publish(view)
	if _, ok := o.Check(1); !ok {
		t.Error("a lease from after the sleep is not believed")
	}
}
