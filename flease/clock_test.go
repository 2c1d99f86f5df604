package flease

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// fixedTime is a clock that stands still.
type fixedTime struct {
	now    machine.Time
	sleeps uint64
}

func (f fixedTime) read() (machine.Time, uint64)        { return f.now, f.sleeps }
func (f fixedTime) watch(ctx context.Context, _ func()) { <-ctx.Done() }

// A lease is valid while both clocks allow it and the computer was not suspended.
func TestValid(t *testing.T) {
	until := machine.Time{Mono: 100, Wall: 1000}
	for name, test := range map[string]struct {
		clock fixedTime
		want  bool
	}{
		"in time":               {fixedTime{machine.Time{Mono: 99, Wall: 1000}, 7}, true},
		"late, monotonic clock": {fixedTime{machine.Time{Mono: 100, Wall: 0}, 7}, false},
		"late, wall clock":      {fixedTime{machine.Time{Mono: 0, Wall: 1001}, 7}, false},
		"slept":                 {fixedTime{machine.Time{Mono: 0, Wall: 0}, 8}, false},
	} {
		l := &Lease{node: &Node{time: test.clock}, sleeps: 7}
		if l.Valid() {
			t.Errorf("%s: valid with no time at all", name)
		}
		l.until.Store(&until)
		if l.Valid() != test.want {
			t.Errorf("%s: valid %t, want %t", name, l.Valid(), test.want)
		}
	}
}

// A wall clock that is set, in either direction, ends all leases: Valid returns false at once, and
// Done is closed soon.
func TestClockStep(t *testing.T) {
	for name, by := range map[string]time.Duration{
		"forward": time.Hour, "back": -time.Hour, "a little": 2 * epsilon,
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func(t *testing.T) {
				s := newSystem(t, 3, nil)
				l := s.acquire(1, "r")
				s.clocks[1].ahead.Store(int64(by))
				if by > lease && l.Valid() {
					t.Error("valid, although it has expired by the wall clock")
				}
				began := time.Now()
				<-l.Done()
				synctest.Wait() // for the log
				if took := time.Since(began); took > tick {
					t.Errorf("Done is closed after %v", took)
				}
				if l.Valid() || !strings.Contains(l.Err().Error(), "clock of this computer was set") || leasehold.KindOf(l.Err()) != leasehold.ErrNotOwner {
					t.Errorf("valid %t, %v", l.Valid(), l.Err())
				}
				if got := s.nodes[1].Status().Clock; got.Steps != 1 || (got.By-by).Abs() > time.Millisecond || got.Stepped.IsZero() {
					t.Errorf("status %+v", got)
				}
				if s.log.count("level=ERROR", "member=1", "was set") != 1 || s.log.count("leases lost", "member=1") != 1 {
					t.Errorf("the log: %s", s.log.String())
				}
			})
		})
	}
}

// A lease that is released at the moment when the clock is set ends, and Release returns.
func TestReleaseAtClockStep(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		l := s.acquire(1, "r")
		synctest.Wait() // no other goroutine reads the clock first
		s.clocks[1].ahead.Store(int64(-time.Minute))
		if err := l.Release(t.Context()); !errors.Is(err, leasehold.ErrUnavailable) || l.Valid() {
			t.Errorf("%v, valid %t", err, l.Valid())
		}
		s.clocks[1].ahead.Store(0)
		s.acquire(1, "r")
	})
}

// A member with a wrong clock acquires no lease, and both sides log it; after the clock is corrected the
// member takes part again.
func TestWrongClock(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		s.acquire(1, "r")
		s.clocks[3].ahead.Store(int64(time.Hour))
		time.Sleep(2 * tick)
		waits := make(chan *Lease, 1)
		go func() { waits <- s.acquire(3, "s") }()
		time.Sleep(3 * lease) // at first it does not take part, as after a start
		for _, id := range []ID{1, 2} {
			for _, m := range s.nodes[id].Status().Members {
				if wrong := m.ClockOff != 0; wrong != (m.ID == 3) {
					t.Errorf("member %d: clock of %d off by %v", id, m.ID, m.ClockOff)
				}
			}
		}
		if !s.nodes[3].Status().Clock.Wrong {
			t.Error("its own status does not report the wrong clock")
		}
		for _, words := range [][]string{{"member=1", "of=3"}, {"member=2", "of=3"}, {"member=3", "differs from those of most other members"}} {
			if s.log.count(append(words, "level=ERROR")...) == 0 {
				t.Errorf("no line of the log has %q: %s", words, s.log.String())
			}
		}
		select {
		case <-waits:
			t.Error("a member with a wrong clock acquired a lease")
		default:
		}
		s.clocks[3].ahead.Store(0)
		if l := <-waits; !l.Valid() {
			t.Error("not valid")
		}
		time.Sleep(lease)
		if s.nodes[3].Status().Clock.Wrong || s.nodes[1].Status().Members[1].ClockOff != 0 {
			t.Error("the corrected clock is still reported as wrong")
		}
	})
}

// A suspend ends all leases, although they have not expired on either clock, and the error has the reason.
func TestSuspendEndsLeases(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		l := s.acquire(1, "r")
		s.clocks[1].slept.Add(1)
		if l.Valid() {
			t.Error("valid after a suspend")
		}
		<-l.Done()
		synctest.Wait() // for the log
		if !strings.Contains(l.Err().Error(), "suspended") || s.log.count("suspended: all leases") != 1 {
			t.Errorf("%v; the log: %s", l.Err(), s.log.String())
		}
		if again := s.acquire(1, "r"); again.Fence() <= l.Fence() || !again.Valid() || l.Valid() {
			t.Errorf("fence %d after %d", again.Fence(), l.Fence())
		}
	})
}

// A thousand lost leases are one line of the log, and repeated lines are rate limited.
func TestLogIsNotFlooded(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		if _, err := s.nodes[1].AcquireAll(t.Context(), numbered(1000)); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			s.clocks[1].slept.Add(1)
			time.Sleep(1500 * time.Millisecond)
		}
		synctest.Wait()
		if s.log.count("leases lost", "count=1000") != 1 || s.log.count("suspended: all") != 1 {
			t.Errorf("the log: %s", s.log.String())
		}
		time.Sleep(logInterval)
		s.clocks[1].slept.Add(1)
		time.Sleep(2 * tick)
		if s.log.count("suspended: all", "since_last=4") != 1 {
			t.Errorf("the log: %s", s.log.String())
		}
	})
}
