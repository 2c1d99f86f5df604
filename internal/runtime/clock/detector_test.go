package clock

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// fake is a computer that can be suspended and whose wall clock can be set.
type fake struct {
	mu      sync.Mutex
	wall    time.Duration // ahead of the monotonic clock
	slept   time.Duration
	silent  bool            // the system does not report suspends
	glitch  []time.Duration // errors of the next readings
	reads   int
	allowed time.Duration
}

func (f *fake) Offset() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	wall := f.wall
	if len(f.glitch) > 0 {
		wall += f.glitch[0]
		f.glitch = f.glitch[1:]
	}
	return wall
}

func (f *fake) Suspended() (time.Duration, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.slept, !f.silent
}

func (f *fake) Tolerance() time.Duration { return f.allowed }

// change suspends the computer and sets the wall clock.
func (f *fake) change(sleep, set time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.slept += sleep
	f.wall += sleep + set
}

func TestDetectorDistinguishesSuspendFromSetClock(t *testing.T) {
	for _, test := range []struct {
		name       string
		silent     bool // the system does not report suspends
		sleep, set time.Duration
		want       uint64
	}{
		{"no change", false, 0, 0, 0},
		{"a long suspend", false, time.Hour, 0, 1},
		{"a short suspend", false, 2 * time.Millisecond, 0, 1},
		{"a clock set forward", false, 0, time.Hour, 0},
		{"a clock set back", false, 0, -time.Hour, 0},
		{"a suspend, and a clock set back by half of it", false, time.Hour, -30 * time.Minute, 1},
		{"a suspend, and a clock set back by more", false, time.Minute, -time.Hour, 1},
		{"a leap second", false, 0, -time.Second, 0},
		{"an unreported suspend", true, time.Hour, 0, 1},
		{"a clock set forward, suspends unreported", true, 0, time.Hour, 1},
		{"a clock set back, suspends unreported", true, 0, -time.Hour, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := &fake{silent: test.silent, allowed: time.Millisecond}
			d := NewDetectorOf(New(), f)
			f.change(test.sleep, test.set)
			for range 3 { // detected at once, and once
				if got := d.Epoch(later(d)); got != test.want {
					t.Fatalf("epoch %d, want %d", got, test.want)
				}
			}
			f.change(time.Minute, 0)
			if got := d.Epoch(later(d)); got != test.want+1 {
				t.Errorf("epoch %d after another suspend, want %d", got, test.want+1)
			}
		})
	}
}

// later is an instant at which the last comparison is too old.
func later(d *Detector) mono.Instant { return mono.Instant(d.checked.Load()).Add(checkInterval) }

// An interruption between the readings of the two clocks is no suspend, even if the system does not report
// suspends.
func TestDetectorIgnoresInterruptions(t *testing.T) {
	for _, glitch := range [][]time.Duration{
		{-time.Second},
		{time.Second},
		{-time.Second, -3 * time.Second},
		{time.Second, 2 * time.Second},
	} {
		f := &fake{silent: true, allowed: time.Millisecond}
		d := NewDetectorOf(New(), f)
		f.glitch = glitch
		for range 3 {
			if got := d.Epoch(later(d)); got != 0 {
				t.Errorf("readings off by %v count as %d suspends", glitch, got)
			}
		}
	}
}

// A comparison is valid for 10 microseconds of the monotonic clock.
func TestDetectorCheckInterval(t *testing.T) {
	f := &fake{allowed: time.Millisecond}
	d := NewDetectorOf(New(), f)
	checked := mono.Instant(d.checked.Load())
	f.reads = 0
	d.Epoch(checked.Add(-time.Second)) // read before the comparison of another goroutine
	d.Epoch(checked)
	d.Epoch(checked.Add(checkInterval - 1))
	if f.reads != 0 {
		t.Errorf("%d readings within checkInterval", f.reads)
	}
	d.Epoch(checked.Add(checkInterval))
	if f.reads != 1 {
		t.Errorf("%d readings after it, want 1", f.reads)
	}
	d.Epoch(checked.Add(2*checkInterval - 1))
	if f.reads != 1 {
		t.Errorf("%d readings after a new comparison", f.reads)
	}
}

// All concurrent callers of Epoch detect the suspend.
func TestConcurrentEpoch(t *testing.T) {
	f := &fake{allowed: time.Millisecond}
	d := NewDetectorOf(New(), f)
	for round := range uint64(50) {
		f.change(time.Hour, 0)
		at := later(d)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if got := d.Epoch(at); got != round+1 {
					t.Errorf("epoch %d, want %d", got, round+1)
				}
			})
		}
		all.Wait()
	}
}

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{allowed: time.Millisecond}
		d := NewDetectorOf(New(), f)
		ctx, cancel := context.WithCancel(t.Context())
		calls := 0
		var watch sync.WaitGroup
		watch.Go(func() { d.Watch(ctx, func() { calls++ }) })
		time.Sleep(time.Minute)
		f.change(time.Hour, 0)
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		if calls != 1 {
			t.Errorf("%d calls within a second after a suspend", calls)
		}
		f.change(time.Hour, 0)
		d.Epoch(later(d)) // another goroutine detects it first
		synctest.Wait()
		if calls != 2 {
			t.Errorf("%d calls, want 2 at once", calls)
		}
		f.change(0, time.Hour)
		time.Sleep(time.Minute)
		cancel()
		watch.Wait()
		if calls != 2 {
			t.Errorf("%d calls after the clock was set, want 2", calls)
		}
	})
}

// The drift of a slewed wall clock is no suspend, and a later suspend is detected.
func TestWatchFollowsDrift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{silent: true, allowed: 50 * time.Millisecond}
		d := NewDetectorOf(New(), f)
		ctx, cancel := context.WithCancel(t.Context())
		var watch sync.WaitGroup
		watch.Go(func() { d.Watch(ctx, func() {}) })
		for range 3600 {
			time.Sleep(time.Second)
			f.change(0, 500*time.Microsecond)
		}
		if got := d.Epoch(d.clock.Now()); got != 0 {
			t.Errorf("%d suspends in an hour of slewing", got)
		}
		f.change(time.Second, 0)
		time.Sleep(time.Second)
		synctest.Wait()
		if got := d.Epoch(d.clock.Now()); got != 1 {
			t.Errorf("epoch %d after a suspend, want 1", got)
		}
		cancel()
		watch.Wait()
	})
}

// The readings of the real computer.
func TestSystem(t *testing.T) {
	d := NewDetector(New())
	for range 1000 {
		if got := d.check(d.clock.Now()); got != 0 {
			t.Fatalf("epoch %d: was the computer suspended during this test?", got)
		}
	}
	first, known := d.source.Suspended()
	if runtime.GOOS == "linux" && !known {
		t.Skip("this sandbox does not let a process read CLOCK_BOOTTIME, without which there is nothing to compare")
	}
	if runtime.GOOS != "linux" && known {
		t.Errorf("suspended for %v on a system that does not report it", first)
	}
	second, _ := d.source.Suspended()
	if diff := (second - first).Abs(); known && diff > d.source.Tolerance() {
		t.Errorf("suspended for %v, then for %v", first, second)
	}
}

func TestEpochDoesNotAllocate(t *testing.T) {
	c := New()
	d := NewDetector(c)
	if n := testing.AllocsPerRun(1000, func() { d.check(c.Now()) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
