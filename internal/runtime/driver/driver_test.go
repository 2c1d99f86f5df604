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

// ticker is a machine that wakes every second. The action of an event is the event.
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

// start runs a driver until the end of the test. did returns the actions so far.
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

func TestEventsAndTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _, did := start(t, 4)
		time.Sleep(1500 * time.Millisecond)
		if !d.Post(t.Context(), "a") || !d.Offer("b") {
			t.Error("an event was rejected")
		}
		time.Sleep(time.Second)
		want := []string{"tick 0s", "tick 1s", "a", "b", "tick 2s"}
		if got := did(); !slices.Equal(got, want) {
			t.Errorf("did %q, want %q", got, want)
		}
	})
}

// Urgent events and functions run before other events, in their order.
func TestUrgentEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _, did := start(t, 4)
		synctest.Wait()
		resume := make(chan struct{})
		go func() { _ = d.Do(t.Context(), func(mono.Instant) { <-resume }) }()
		synctest.Wait() // the machine is busy
		d.Post(t.Context(), "posted")
		d.PostUrgent(t.Context(), "urgent")
		result := make(chan error, 1)
		go func() { result <- d.Do(t.Context(), func(mono.Instant) { d.act(0, []string{"do"}) }) }()
		synctest.Wait()
		close(resume)
		if err := <-result; err != nil {
			t.Error(err)
		}
		if got, want := did(), []string{"tick 0s", "urgent", "do", "posted"}; !slices.Equal(got, want) {
			t.Errorf("did %q, want %q", got, want)
		}
	})
}

// Low-priority events run last but do not starve, and their content is read when they run.
func TestLowPriorityEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const posted = 2*maxBeforeLow + 1
		d, _, did := start(t, posted)
		resume := make(chan struct{})
		go func() { _ = d.Do(t.Context(), func(mono.Instant) { <-resume }) }()
		synctest.Wait() // the machine is busy
		newest := "old"
		for range 3 {
			d.PostLowPriority(t.Context(), func() string { return newest })
		}
		for range posted {
			d.Post(t.Context(), "posted")
		}
		if n := d.Waiting(); n != posted+3 {
			t.Errorf("%d events are queued, want %d", n, posted+3)
		}
		newest = "new"
		close(resume)
		in := slices.Repeat([]string{"posted"}, maxBeforeLow)
		want := slices.Concat([]string{"tick 0s"}, in, []string{"new"}, in, []string{"new", "posted", "new"})
		if got := did(); !slices.Equal(got, want) {
			t.Errorf("did %q, want %q", got, want)
		}
	})
}

// Try runs the machine if it is idle and no events are queued.
func TestTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		idle := New[string, string](clock.New(), &ticker{}, 4, nil)
		if idle.Try("early") {
			t.Error("the machine runs before Run")
		}
		d, cancel, did := start(t, 4)
		did()
		if !d.Try("tried") || !d.TryLowPriority(func() string { return "low" }) {
			t.Error("Try fails on an idle machine")
		}
		if err := d.Do(t.Context(), func(mono.Instant) {
			if d.Try("second at a time") {
				t.Error("two goroutines run the machine")
			}
			if d.waiting.Load() != 1 {
				t.Error("an event between queue and machine could be overtaken")
			}
		}); err != nil {
			t.Error(err)
		}
		d.Post(t.Context(), "posted")
		d.Offer("offered")
		synctest.Wait()
		d.waiting.Add(1) // an event is queued
		if d.Try("overtaking") {
			t.Error("Try overtakes a queued event")
		}
		d.waiting.Add(-1)
		if got, want := did(), []string{"tick 0s", "tried", "low", "posted", "offered"}; !slices.Equal(got, want) {
			t.Errorf("did %q, want %q", got, want)
		}
		if !d.Try("last") {
			t.Error("Try fails on a machine that is idle again")
		}
		cancel()
		<-d.Done()
		if d.Try("late") {
			t.Error("the machine runs after the end of Run")
		}
	})
}

// A machine that has panicked does not run again, even if the panic is recovered.
func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _, did := start(t, 4)
		did()
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			d.TryLowPriority(func() string { panic("broken") })
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

// Goroutines that wait for a sleeping machine do not stop a virtual clock.
func TestVirtualTimeDuringStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _, did := start(t, 4)
		did()
		if !d.TryLowPriority(func() string { time.Sleep(3 * time.Second); return "tried" }) {
			t.Error("Try fails on an idle machine")
		}
		if got, want := did(), []string{"tick 0s", "tried", "tick 1s", "tick 2s", "tick 3s"}; !slices.Equal(got, want) {
			t.Errorf("did %q, want %q", got, want)
		}
	})
}

// wakeAt is a machine that wakes at the instant of the last event.
type wakeAt struct{ next mono.Instant }

func (m *wakeAt) Step(now mono.Instant, event time.Duration) ([]string, mono.Instant) {
	m.next = mono.Instant(event)
	return m.Advance(now)
}

func (m *wakeAt) Advance(now mono.Instant) ([]string, mono.Instant) {
	if now < m.next {
		return nil, m.next
	}
	m.next = mono.Never
	return []string{"woken at " + time.Duration(now).String()}, m.next
}

// The timer fires at the instant of the last step, whether that is earlier or later than the previous one.
func TestTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var did []string
		d := New[time.Duration, string](clock.New(), &wakeAt{next: mono.Never}, 1, func(_ mono.Instant, actions []string) { did = append(did, actions...) })
		ctx, cancel := context.WithCancel(t.Context())
		go d.Run(ctx)
		t.Cleanup(func() { cancel(); <-d.Done() })
		for _, at := range []time.Duration{10 * time.Second, 5 * time.Second, 8 * time.Second} { // first, earlier, later
			synctest.Wait()
			if !d.Try(at) {
				t.Error("Try fails on an idle machine")
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

// The event of a suspend is processed before other events.
func TestSuspendEventIsFirst(t *testing.T) {
	c := clock.New()
	computer := &laptop{}
	m := DetectSuspend[string, string](&ticker{next: mono.Never}, clock.NewDetectorOf(c, computer), "slept")
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
		busy, resume := make(chan struct{}), make(chan struct{})
		go func() {
			_ = d.Do(t.Context(), func(mono.Instant) { close(busy); <-resume })
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
		close(resume)
		if got := did(); !slices.Contains(got, "b") || slices.Contains(got, "c") {
			t.Errorf("did %q, want a and b but not c", got)
		}
	})
}

func TestAfterEndOfRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, cancel, _ := start(t, 0)
		cancel()
		<-d.Done()
		if d.Post(t.Context(), "late") {
			t.Error("an event was queued after the end")
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
