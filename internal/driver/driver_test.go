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
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/mono"
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
		if err := d.Do(t.Context(), func(mono.Instant) {}); !errors.Is(err, leasehold.Closed) {
			t.Errorf("Do after the end: %v", err)
		}
		ctx, end := context.WithCancel(t.Context())
		end()
		if err := d.Do(ctx, func(mono.Instant) {}); leasehold.KindOf(err) == leasehold.Other {
			t.Errorf("Do after the end of both: %v", err)
		}
	})
}
