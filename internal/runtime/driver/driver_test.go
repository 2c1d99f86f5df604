package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
)

// ticker is a machine that wakes every second, and answers each event with
// itself.
type ticker struct{ next mono.Instant }

func (m *ticker) Step(now mono.Instant, event string) ([]string, mono.Instant) {
	actions, wake := m.Advance(now)
	return append(actions, event), wake
}

func (m *ticker) Advance(now mono.Instant) ([]string, mono.Instant) {
	var actions []string
	for now >= m.next {
		actions = append(actions, fmt.Sprintf("tick %v", time.Duration(m.next)))
		m.next = m.next.Add(time.Second)
	}
	return actions, m.next
}

// start runs a driver until the test ends, and returns what it did so far.
func start(t *testing.T, queue int) (*Driver[string, string], context.CancelFunc, func() []string) {
	var did []string
	d := New[string, string](clock.New(), &ticker{}, queue, func(_ mono.Instant, actions []string) { did = append(did, actions...) })
	ctx, cancel := context.WithCancel(t.Context())
	go d.Run(ctx)
	t.Cleanup(func() { cancel(); <-d.Done() })
	return d, cancel, func() []string {
		synctest.Wait()
		return slices.Clone(did)
	}
}

func TestDriverJoinsEventsAndTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _, did := start(t, 4)
		time.Sleep(1500 * time.Millisecond)
		if !d.Post(t.Context(), "a") || !d.Offer("b") {
			t.Error("an event was refused")
		}
		time.Sleep(time.Second)
		want := []string{"tick 0s", "tick 1s", "a", "b", "tick 2s"}
		if got := did(); !slices.Equal(got, want) {
			t.Errorf("did %q, want %q", got, want)
		}
	})
}

// What is urgent overtakes other events, and what is to be done between two
// events is urgent too; among themselves they keep their order.
func TestUrgency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _, did := start(t, 4)
		synctest.Wait()
		calm := make(chan struct{})
		go func() { _ = d.Do(t.Context(), func(mono.Instant) { <-calm }) }()
		synctest.Wait() // it is busy
		d.Post(t.Context(), "posted")
		d.PostUrgent(t.Context(), "urgent")
		asked := make(chan error, 1)
		go func() { asked <- d.Do(t.Context(), func(mono.Instant) { d.act(0, []string{"do"}) }) }()
		synctest.Wait()
		close(calm)
		if err := <-asked; err != nil {
			t.Error(err)
		}
		if got, want := did(), []string{"tick 0s", "urgent", "do", "posted"}; !slices.Equal(got, want) {
			t.Errorf("did %q, want %q", got, want)
		}
	})
}

// Patient events come last, one in a while all the same, and are what they are when their turn comes.
func TestPatientEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const posted = 2*mostAhead + 1
		d, _, did := start(t, posted)
		calm := make(chan struct{})
		go func() { _ = d.Do(t.Context(), func(mono.Instant) { <-calm }) }()
		synctest.Wait() // it is busy
		newest := "old"
		for range 3 {
			d.PostPatient(t.Context(), func() string { return newest })
		}
		for range posted {
			d.Post(t.Context(), "posted")
		}
		if n := d.Waiting(); n != posted+3 {
			t.Errorf("%d wait, want %d", n, posted+3)
		}
		newest = "new"
		close(calm)
		in := slices.Repeat([]string{"posted"}, mostAhead)
		want := slices.Concat([]string{"tick 0s"}, in, []string{"new"}, in, []string{"new", "posted", "new"})
		if got := did(); !slices.Equal(got, want) {
			t.Errorf("did %q, want %q", got, want)
		}
	})
}

// Whoever tries runs the machine, if nobody else does and nothing comes before.
func TestTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		idle := New[string, string](clock.New(), &ticker{}, 4, nil)
		if idle.Try("early") {
			t.Error("a machine runs before its driver does")
		}
		d, cancel, did := start(t, 4)
		did()
		if !d.Try("tried") || !d.TryPatient(func() string { return "patient" }) {
			t.Error("it is refused, and nobody is before it")
		}
		if err := d.Do(t.Context(), func(mono.Instant) {
			if d.Try("second at a time") {
				t.Error("two run the machine")
			}
			if d.waiting.Load() != 1 {
				t.Error("what has left the queue could be overtaken")
			}
		}); err != nil {
			t.Error(err)
		}
		d.Post(t.Context(), "posted")
		d.Offer("offered")
		synctest.Wait()
		d.waiting.Add(1) // something else was posted
		if d.Try("overtaking") {
			t.Error("it overtakes what was posted before")
		}
		d.waiting.Add(-1)
		if got, want := did(), []string{"tick 0s", "tried", "patient", "posted", "offered"}; !slices.Equal(got, want) {
			t.Errorf("did %q, want %q", got, want)
		}
		if !d.Try("last") {
			t.Error("it is refused, and nobody is before it any more")
		}
		cancel()
		<-d.Done()
		if d.Try("late") {
			t.Error("a machine runs after its driver has ended")
		}
	})
}

// A machine that has panicked does not run again, as long as there still is a process: what it
// says could be anything.
func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _, did := start(t, 4)
		did()
		func() {
			defer func() {
				if recover() == nil {
					t.Error("it goes on")
				}
			}()
			d.TryPatient(func() string { panic("broken") })
		}()
		d.Post(t.Context(), "posted")
		if d.Try("tried") {
			t.Error("a machine that has panicked runs again")
		}
		time.Sleep(5 * time.Second)
		if got, want := did(), []string{"tick 0s"}; !slices.Equal(got, want) {
			t.Errorf("did %q, want %q", got, want)
		}
	})
}

// Whoever waits for the machine while it sleeps does not stop a virtual clock.
func TestSleepingStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _, did := start(t, 4)
		did()
		if !d.TryPatient(func() string { time.Sleep(3 * time.Second); return "tried" }) {
			t.Error("it is refused, and nobody is before it")
		}
		if got, want := did(), []string{"tick 0s", "tried", "tick 1s", "tick 2s", "tick 3s"}; !slices.Equal(got, want) {
			t.Errorf("did %q, want %q", got, want)
		}
	})
}

// alarmed is a machine that wakes so long after the start as the last event says.
type alarmed struct{ next mono.Instant }

func (m *alarmed) Step(now mono.Instant, event time.Duration) ([]string, mono.Instant) {
	m.next = mono.Instant(event)
	return m.Advance(now)
}

func (m *alarmed) Advance(now mono.Instant) ([]string, mono.Instant) {
	if now < m.next {
		return nil, m.next
	}
	m.next = mono.Never
	return []string{"woken at " + time.Duration(now).String()}, m.next
}

// The timer rings when the machine is to wake, whoever ran it last, and whether that is
// sooner or later than it was.
func TestAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var did []string
		d := New[time.Duration, string](clock.New(), &alarmed{next: mono.Never}, 1, func(_ mono.Instant, actions []string) { did = append(did, actions...) })
		ctx, cancel := context.WithCancel(t.Context())
		go d.Run(ctx)
		t.Cleanup(func() { cancel(); <-d.Done() })
		for _, at := range []time.Duration{10 * time.Second, 5 * time.Second, 8 * time.Second} { // the first, sooner, later
			synctest.Wait()
			if !d.Try(at) {
				t.Error("it is refused")
			}
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		d.Try(30 * time.Second)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if want := []string{"woken at 8s", "woken at 30s"}; !slices.Equal(did, want) {
			t.Errorf("%q, want %q", did, want)
		}
	})
}

// A machine that is wakeful hears of a sleep before anything else.
func TestWokenHearsOfSleepFirst(t *testing.T) {
	c := clock.New()
	computer := &laptop{}
	m := Woken[string, string](&ticker{next: mono.Never}, clock.NewDetectorOf(c, computer), "slept")
	now := c.Now()
	step := func(want ...string) {
		t.Helper()
		now = now.Add(time.Second)
		if got, _ := m.Step(now, "event"); !slices.Equal(got, want) {
			t.Errorf("did %q, want %q", got, want)
		}
	}
	step("event")
	computer.slept = time.Minute
	step("slept", "event")
	step("event")
	computer.slept = time.Hour
	if got, _ := m.Advance(now.Add(time.Second)); !slices.Equal(got, []string{"slept"}) || m.Epoch() != 2 {
		t.Errorf("did %q in epoch %d", got, m.Epoch())
	}
}

// laptop is a computer that can be suspended.
type laptop struct{ slept time.Duration }

func (l *laptop) Offset() time.Duration            { return l.slept }
func (l *laptop) Suspended() (time.Duration, bool) { return l.slept, true }
func (l *laptop) Tolerance() time.Duration         { return time.Millisecond }

func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _, did := start(t, 2)
		busy, calm := make(chan struct{}), make(chan struct{})
		go func() {
			_ = d.Do(t.Context(), func(mono.Instant) { close(busy); <-calm })
		}()
		<-busy
		if !d.Offer("a") || !d.Offer("b") || d.Offer("c") {
			t.Error("want room for exactly two events")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if d.Post(ctx, "c") {
			t.Error("Post found room in a full queue")
		}
		close(calm)
		if got := did(); !slices.Contains(got, "b") || slices.Contains(got, "c") {
			t.Errorf("did %q, want a and b but not c", got)
		}
	})
}

func TestEndOfTheDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cancel, _ := start(t, 0)
		cancel()
		<-d.Done()
		if d.Post(t.Context(), "late") {
			t.Error("an event was taken after the end")
		}
		if err := d.Do(t.Context(), func(mono.Instant) {}); !errors.Is(err, leasehold.ErrClosed) {
			t.Errorf("Do after the end: %v", err)
		}
		ctx, end := context.WithCancel(t.Context())
		end()
		if err := d.Do(ctx, func(mono.Instant) {}); leasehold.KindOf(err) == leasehold.Other {
			t.Errorf("Do after the end of both: %v", err)
		}
	})
}
