package demo

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/server/proc"
)

// strikeTimes runs the schedule of a nemesis in virtual time, and returns the times of its faults.
// Each victim is replaced in three seconds.
func strikeTimes(t *testing.T, whole time.Duration, first time.Duration, fails error) (struck []time.Duration, failure error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		failing, fail := context.WithCancelCause(t.Context())
		n := &nemesis{
			cluster: &cluster{cfg: Config{For: whole, KillEvery: 4 * time.Second, Seed: 1}, fail: fail},
			begin:   time.Now(),
		}
		n.repeat(ctx, n.random(1), first, func(ctx context.Context, _ *rand.Rand) error {
			struck = append(struck, time.Since(n.begin))
			proc.Pause(ctx, 3*time.Second)
			return fails
		})
		failure = context.Cause(failing)
	})
	return struck, failure
}

func TestNemesisLeavesTimeToRecover(t *testing.T) {
	struck, _ := strikeTimes(t, time.Minute, 5*time.Second, nil)
	if len(struck) < 5 || struck[0] != 5*time.Second {
		t.Errorf("struck at %v", struck)
	}
	if last := struck[len(struck)-1]; last > time.Minute-reserve {
		t.Errorf("struck at %v, which leaves less than %v", last, reserve)
	}
}

// TestNemesisStrikesAtLeastOnce: even a short demo has a fault.
func TestNemesisStrikesAtLeastOnce(t *testing.T) {
	if struck, _ := strikeTimes(t, 10*time.Second, 5*time.Second, nil); len(struck) != 1 {
		t.Errorf("struck at %v", struck)
	}
}

func TestNemesisWithoutTimeLimit(t *testing.T) {
	if struck, err := strikeTimes(t, 0, time.Second, nil); len(struck) < 60 || err != nil {
		t.Errorf("struck %d times in ten minutes, %v", len(struck), err)
	}
}

func TestNemesisReportsErrors(t *testing.T) {
	wrong := errors.New("no leader")
	if struck, err := strikeTimes(t, 0, time.Second, wrong); len(struck) != 1 || !errors.Is(err, wrong) {
		t.Errorf("struck %d times, %v", len(struck), err)
	}
}

// TestLongAbsencesOnlyInLongDemos: a long absence of an owner must end before the demo.
func TestLongAbsencesOnlyInLongDemos(t *testing.T) {
	for _, test := range []struct {
		whole time.Duration
		long  bool
	}{{0, true}, {10 * time.Second, false}} {
		n := &nemesis{cluster: &cluster{cfg: Config{For: test.whole, Lease: 10 * time.Second}}, begin: time.Now()}
		random := rand.New(rand.NewPCG(1, 1))
		short, long := 0, 0
		for range 100 {
			switch d := n.absence(random); {
			case d >= time.Second && d < 3*time.Second:
				short++
			case d > 12*time.Second:
				long++
			default:
				t.Errorf("away for %v", d)
			}
		}
		if short == 0 || (long > 0) != test.long {
			t.Errorf("a demo of %v: %d short and %d long absences", test.whole, short, long)
		}
	}
}

// TestOwnersAreStoppedOnlyInLongDemos: a stopped owner requires time for the expiry of its leases
// and for the other faults.
func TestOwnersAreStoppedOnlyInLongDemos(t *testing.T) {
	for _, test := range []struct {
		whole, lease time.Duration
		want         bool
	}{
		{0, 10 * time.Second, true},
		{30 * time.Second, 10 * time.Second, true},
		{20 * time.Second, 10 * time.Second, false},
		{minFor, minLease, false},
	} {
		n := &nemesis{cluster: &cluster{cfg: Config{For: test.whole, Lease: test.lease}}, begin: time.Now()}
		if got := n.mayStop(firstStop + minFor); got != (test.want && proc.CanPause) {
			t.Errorf("a demo of %v with leases of %v: %t", test.whole, test.lease, got)
		}
	}
}

// TestStoppedProcessHasNoIncarnation: a stopped process counts as dead until it resumes, which
// starts a new incarnation.
func TestStoppedProcessHasNoIncarnation(t *testing.T) {
	if !proc.CanPause {
		t.Skip("processes cannot be stopped on this system")
	}
	ctx, fail := context.WithCancelCause(t.Context())
	c := &cluster{fail: fail}
	m := startOwner(t, c, "sleeper", "sleeper")
	before := m.Incarnation()
	if err := m.Pause(); err != nil {
		t.Fatal(err)
	}
	if m.Incarnation() != 0 {
		t.Error("a stopped process has an incarnation")
	}
	if err := m.Resume(); err != nil {
		t.Fatal(err)
	}
	if m.Incarnation() <= before {
		t.Errorf("incarnation %d after %d", m.Incarnation(), before)
	}
	if err := m.Pause(); err != nil { // a stopped process can be killed
		t.Fatal(err)
	}
	m.Close()
	if err := context.Cause(ctx); err != nil {
		t.Error(err)
	}
}

// TestLostLeasesAreThoseOfSurvivors: only losses of owners that have run without interruption
// count.
func TestLostLeasesAreThoseOfSurvivors(t *testing.T) {
	c := &cluster{fail: func(err error) { t.Error(err) }}
	for _, name := range []string{"a", "b"} {
		c.owners = append(c.owners, startOwner(t, c, name, "sleeper"))
	}
	l, _ := newTestLoad(&Config{Users: 1}, &aTable{})
	n := newNemesis(c, l)
	lose := func(owner leasehold.OwnerID, cause leasehold.Cause) {
		l.tally.addLoss(leasehold.Loss{Owner: owner, Cause: cause}, false)
	}
	lose("a", leasehold.CauseExpired)
	before := n.baseline()
	c.owners[1].Kill()
	if err := c.owners[1].Start(); err != nil {
		t.Fatal(err)
	}
	lose("a", leasehold.CauseReleased)
	lose("b", leasehold.CauseExpired)
	if lost := n.lostSince(t.Context(), before); lost != 0 {
		t.Errorf("%d leases were lost, want none", lost)
	}
	lose("a", leasehold.CauseExpired)
	lose("a", leasehold.CauseRefused)
	if lost := n.lostSince(t.Context(), before); lost != 2 {
		t.Errorf("%d leases were lost, want 2", lost)
	}
}
