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

// fake is a computer that can be put to sleep and whose wall clock can be set.
type fake struct {
	mu      sync.Mutex
	wall    time.Duration // ahead of the monotonic clock
	slept   time.Duration
	silent  bool            // the system does not say for how long it slept
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

// change sleeps for a while and sets the wall clock.
func (f *fake) change(sleep, set time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.slept += sleep
	f.wall += sleep + set
}

func TestDetectorTellsSleepFromSetClock(t *testing.T) {
	for _, test := range []struct {
		name       string
		silent     bool // the system does not say how long it slept
		sleep, set time.Duration
		want       uint64
	}{
		{"nothing", false, 0, 0, 0},
		{"a long sleep", false, time.Hour, 0, 1},
		{"a short sleep", false, 2 * time.Millisecond, 0, 1},
		{"a clock set forward", false, 0, time.Hour, 0},
		{"a clock set back", false, 0, -time.Hour, 0},
		{"a sleep, and a clock set back by half of it", false, time.Hour, -30 * time.Minute, 1},
		{"a sleep, and a clock set back by more", false, time.Minute, -time.Hour, 1},
		{"a leap second", false, 0, -time.Second, 0},
		{"a sleep of which the system says nothing", true, time.Hour, 0, 1},
		{"a clock set forward, of which it says nothing either", true, 0, time.Hour, 1},
		{"a clock set back, and a system that says nothing", true, 0, -time.Hour, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := &fake{silent: test.silent, allowed: time.Millisecond}
			d := NewDetectorOf(New(), f)
			f.change(test.sleep, test.set)
			for range 3 { // noticed at once, and once
				if got := d.Epoch(later(d)); got != test.want {
					t.Fatalf("epoch %d, want %d", got, test.want)
				}
			}
			f.change(time.Minute, 0)
			if got := d.Epoch(later(d)); got != test.want+1 {
				t.Errorf("epoch %d after another sleep, want %d", got, test.want+1)
			}
		})
	}
}

// later is an instant at which the last look is too old to be trusted.
func later(d *Detector) mono.Instant { return mono.Instant(d.looked.Load()).Add(lookEvery) }

// The process may be interrupted between the readings of the two clocks. That
// is no sleep, even on a system that says nothing.
func TestDetectorIsNotFooledByInterruptions(t *testing.T) {
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
				t.Errorf("readings off by %v count as %d sleeps", glitch, got)
			}
		}
	}
}

// A look is trusted for 10 microseconds on the monotonic clock and no longer.
func TestDetectorLooksOftenEnough(t *testing.T) {
	f := &fake{allowed: time.Millisecond}
	d := NewDetectorOf(New(), f)
	looked := mono.Instant(d.looked.Load())
	f.reads = 0
	d.Epoch(looked.Add(-time.Second)) // read before somebody else looked
	d.Epoch(looked)
	d.Epoch(looked.Add(lookEvery - 1))
	if f.reads != 0 {
		t.Errorf("%d readings within the time of a look", f.reads)
	}
	d.Epoch(looked.Add(lookEvery))
	if f.reads != 1 {
		t.Errorf("%d readings after it, want 1", f.reads)
	}
	d.Epoch(looked.Add(2*lookEvery - 1))
	if f.reads != 1 {
		t.Errorf("%d readings although there was a new look", f.reads)
	}
}

// Everyone who asks at the same time hears of the sleep, not only the one who
// finds it.
func TestDetectorTellsEveryone(t *testing.T) {
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
		told := 0
		var watch sync.WaitGroup
		watch.Go(func() { d.Watch(ctx, func() { told++ }) })
		time.Sleep(time.Minute)
		f.change(time.Hour, 0)
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		if told != 1 {
			t.Errorf("told %d times within a second of a sleep", told)
		}
		f.change(time.Hour, 0)
		d.Epoch(later(d)) // somebody else is first
		synctest.Wait()
		if told != 2 {
			t.Errorf("told %d times, want 2 at once: somebody noticed", told)
		}
		f.change(0, time.Hour)
		time.Sleep(time.Minute)
		cancel()
		watch.Wait()
		if told != 2 {
			t.Errorf("told %d times after the clock was set, want 2", told)
		}
	})
}

// Where the wall clock alone is slewed, the offset drifts: that is no sleep,
// and a sleep after it is still one.
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
			t.Errorf("%d sleeps in an hour of slewing", got)
		}
		f.change(time.Second, 0)
		time.Sleep(time.Second)
		synctest.Wait()
		if got := d.Epoch(d.clock.Now()); got != 1 {
			t.Errorf("epoch %d after a sleep, want 1", got)
		}
		cancel()
		watch.Wait()
	})
}

// What the real computer says while it is awake.
func TestSystem(t *testing.T) {
	d := NewDetector(New())
	for range 1000 {
		if got := d.look(d.clock.Now()); got != 0 {
			t.Fatalf("epoch %d: has the computer really slept in this test?", got)
		}
	}
	first, known := d.source.Suspended()
	if runtime.GOOS == "linux" && !known {
		t.Skip("this sandbox does not let a process read CLOCK_BOOTTIME, without which there is nothing to compare")
	}
	if runtime.GOOS != "linux" && known {
		t.Errorf("the system says that it was suspended for %v, although we do not ask it there", first)
	}
	second, _ := d.source.Suspended()
	if diff := (second - first).Abs(); known && diff > d.source.Tolerance() {
		t.Errorf("suspended for %v, and at once for %v", first, second)
	}
}

func TestEpochDoesNotAllocate(t *testing.T) {
	c := New()
	d := NewDetector(c)
	if n := testing.AllocsPerRun(1000, func() { d.look(c.Now()) }); n != 0 {
		t.Errorf("a look allocates %v times", n)
	}
}
