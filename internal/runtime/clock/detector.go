package clock

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// A Detector finds out that the computer was suspended, by the first question
// after that.
//
// # DESIGN
//
// The problem: Go's monotonic clock is CLOCK_MONOTONIC, which stands still
// while the computer is suspended. A lease that ran for another second on it
// may have ended hours ago for everybody else. CLOCK_BOOTTIME goes on, but
// reading it takes a system call of 200 ns or more, and a check of a lease has
// no more than twice the 40 ns of a bare time.Since.
//
// The idea: a suspended computer's wall clock goes on too, so that the offset
// between it and the monotonic clock grows by as long as the sleep. time.Now
// reads both at once, without a system call but for twice the price of
// time.Since. So the offset is looked at only if the last look is more than
// 10 microseconds old. That is enough: before a computer sleeps the kernel
// stops every process and every device one by one, and starts them all again
// before any process runs, while the monotonic clock runs. No kernel does that
// in 10 microseconds, so the first question after a sleep always looks.
//
// An offset that has changed may also mean that somebody set the wall clock,
// which is to have no consequence. Then the system is asked how long the
// computer has been suspended since it was started, which on Linux is the
// difference of CLOCK_BOOTTIME and CLOCK_MONOTONIC. Other systems are not
// asked: there a wall clock that was set forward counts as a sleep, which costs
// leases but is safe, and one that was set back does not.
//
// What this does not find:
//
//   - a virtual machine that its host stops with all of its clocks, or copies;
//   - a process that is checkpointed and restored, if a time namespace makes its
//     clocks go on where they were, CLOCK_BOOTTIME among them;
//   - a computer that has no clock at all that runs while it sleeps, and a
//     sandbox that gives out CLOCK_MONOTONIC for CLOCK_BOOTTIME, so that a sleep
//     looks like a wall clock that was set;
//   - a sleep of less than about a second where the kernel knows how long it
//     slept only from a battery-backed clock that counts whole seconds;
//   - a wall clock that is set back, by chance, by just as long as the computer
//     slept;
//   - a sleep shorter than the tolerance, which is within the drift bound.
//
// Against the first three nothing inside the machine helps. The fencing token
// does.
type Detector struct {
	clock  *Clock
	source Source
	woken  chan struct{} // tells Watch of a sleep that somebody else noticed

	// looked and epoch are read by every check and written rarely.
	looked atomic.Int64 // the instant before the last look
	epoch  atomic.Uint64

	mu         sync.Mutex
	offset     atomic.Int64  // wall clock minus monotonic clock; written under mu
	remembered mono.Instant  // when the offset was
	suspended  time.Duration // as the system said when last asked
}

// lookEvery is for how long a look is trusted.
const lookEvery = 10 * time.Microsecond

// rememberEvery is how often the offset is remembered anew. On systems that
// slew the wall clock but not the monotonic one it drifts, by up to 500
// microseconds in a second.
const rememberEvery = 10 * time.Second

// A Source is where a detector gets its readings from. Its methods may be
// called from many goroutines at once.
type Source interface {
	// Offset returns the wall clock's time minus the monotonic clock's, from
	// any origin that stays the same.
	Offset() time.Duration
	// Suspended returns for how long the computer has been suspended since it
	// was started. It reports false if the system does not say.
	Suspended() (time.Duration, bool)
	// Tolerance is by how much offsets may differ for no reason.
	Tolerance() time.Duration
}

// NewDetector returns a detector of this computer's sleep, which begins now, at
// epoch 0.
func NewDetector(c *Clock) *Detector { return NewDetectorOf(c, system{c}) }

// NewDetectorOf returns a detector that takes its readings from s.
func NewDetectorOf(c *Clock, s Source) *Detector {
	d := &Detector{clock: c, source: s, woken: make(chan struct{}, 1)}
	d.suspended, _ = s.Suspended()
	d.remember(c.Now(), s.Offset())
	d.looked.Store(int64(d.remembered))
	return d
}

// Epoch returns how often the computer has been found to have slept. Whatever
// is to be forgotten in sleep is marked with the epoch of its making, and is
// good only as long as the epoch is the same. Now is the present instant, read
// just before the call.
//
// It is safe for concurrent use, does not allocate, and costs a nanosecond or
// two; every 10 microseconds one call costs about twice a time.Since.
func (d *Detector) Epoch(now mono.Instant) uint64 {
	if int64(now)-d.looked.Load() < int64(lookEvery) {
		return d.epoch.Load()
	}
	return d.look(now)
}

// look compares the offset with the one remembered. It marks the look with an
// instant from before it: had it one from after it, a sleep in between would be
// hidden.
func (d *Detector) look(now mono.Instant) uint64 {
	diff := d.source.Offset() - time.Duration(d.offset.Load())
	if diff.Abs() > d.source.Tolerance() {
		d.judge()
	}
	d.looked.Store(int64(now))
	return d.epoch.Load()
}

// judge finds out why the offset has changed, and remembers the new one.
func (d *Detector) judge() {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.clock.Now()
	offset := d.settled()
	jump := offset - time.Duration(d.offset.Load())
	if jump.Abs() <= d.source.Tolerance() {
		return // another goroutine was faster, or we were interrupted between two readings
	}
	if d.slept(jump) {
		d.epoch.Add(1)
		select {
		case d.woken <- struct{}{}:
		default:
		}
	}
	d.remember(now, offset)
}

// slept tells a sleep from a wall clock that was set.
func (d *Detector) slept(jump time.Duration) bool {
	total, ok := d.source.Suspended()
	if !ok {
		return jump > 0
	}
	before := d.suspended
	d.suspended = total
	return total-before > d.source.Tolerance()
}

// settled returns an offset that two readings agree on: the two clocks are not
// read at the same instant, and the process may be interrupted in between. On a
// computer that is too busy for that it is content with the fourth.
func (d *Detector) settled() time.Duration {
	last := d.source.Offset()
	for range 3 {
		next := d.source.Offset()
		if (next - last).Abs() <= d.source.Tolerance()/2 {
			return next
		}
		last = next
	}
	return last
}

// remember is called with the lock held, or before anyone else has d.
func (d *Detector) remember(now mono.Instant, offset time.Duration) {
	d.offset.Store(int64(offset))
	d.remembered = now
}

// Watch calls slept after each sleep, within a second of the awakening, until
// the context ends. One goroutine at a time may watch.
func (d *Detector) Watch(ctx context.Context, slept func()) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	seen := d.epoch.Load()
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.woken:
		case <-tick.C:
			d.look(d.clock.Now())
			d.follow()
		}
		if epoch := d.epoch.Load(); epoch != seen {
			seen = epoch
			slept()
		}
	}
}

// follow remembers a slowly drifting offset anew.
func (d *Detector) follow() {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.clock.Now()
	if now.Sub(d.remembered) < rememberEvery {
		return
	}
	offset := d.settled()
	if jump := offset - time.Duration(d.offset.Load()); jump.Abs() <= d.source.Tolerance() {
		d.remember(now, offset)
	}
}
