package clock

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// A Detector detects that the computer was suspended, at the first call of Epoch after the suspend.
//
// # Design
//
// Problem: Go's monotonic clock is CLOCK_MONOTONIC, which does not advance while the computer is suspended.
// A lease with one second left on it may have expired hours ago for all other processes. CLOCK_BOOTTIME
// advances, but reading it takes a system call of 200 ns or more. A check of a lease may take at most twice
// the 40 ns of a time.Since.
//
// Idea: the wall clock of a suspended computer advances, too, so its offset to the monotonic clock grows by the
// duration of the suspend. time.Now reads both clocks without a system call, for twice the cost of time.Since.
// So the detector compares the offset if the last comparison is more than 10 microseconds old.
//
// Why this is enough: before a suspend the kernel stops all processes and devices one by one, and resumes
// the devices before any process. The monotonic clock advances meanwhile. No kernel does that within 10
// microseconds, so the first check after a suspend always compares.
//
// A changed offset may also mean that the wall clock was set, which must have no effect. Then the detector
// reads the total time of suspends since boot, on Linux the difference of CLOCK_BOOTTIME and
// CLOCK_MONOTONIC. Other systems do not report it: there a wall clock that is set forward counts as a
// suspend, which costs leases but is safe. One that is set back does not.
//
// It does not detect:
//
//   - a virtual machine that its host stops with all of its clocks, or copies;
//   - a process that is checkpointed and restored in a time namespace that continues all its clocks, including
//     CLOCK_BOOTTIME;
//   - a suspend of a computer without any clock that advances meanwhile, or in a sandbox that
//     returns CLOCK_MONOTONIC for CLOCK_BOOTTIME;
//   - a suspend of less than about a second if the kernel measures it only by a battery-backed
//     clock with a resolution of seconds;
//   - a suspend during which the wall clock is set back by the same duration;
//   - a suspend shorter than the tolerance, which is within the drift bound.
//
// The first three cannot be detected from within the machine. Fencing tokens protect against them.
type Detector struct {
	clock   *Clock
	source  Source
	resumed chan struct{} // wakes Watch after a suspend that Epoch has detected

	// checked and epoch are read by every call of Epoch and written rarely.
	checked atomic.Int64 // the instant before the last comparison
	epoch   atomic.Uint64

	mu        sync.Mutex
	offset    atomic.Int64  // wall clock minus monotonic clock; written under mu
	offsetAt  mono.Instant  // of the last update of offset
	suspended time.Duration // total as last reported by the system
}

// checkInterval is the validity of a comparison.
const checkInterval = 10 * time.Microsecond

// offsetInterval is the interval of updates of the offset. It drifts by up to 500 microseconds per second
// on systems that slew the wall clock but not the monotonic one.
const offsetInterval = 10 * time.Second

// A Source provides the readings of a detector. It is safe for concurrent use.
type Source interface {
	// Offset returns the wall clock minus the monotonic clock, relative to any constant.
	Offset() time.Duration
	// Suspended returns the total time of suspends since boot. It reports false if the system does
	// not provide it.
	Suspended() (time.Duration, bool)
	// Tolerance returns the maximum difference of offsets without a suspend or a set clock.
	Tolerance() time.Duration
}

// NewDetector returns a detector for this computer, at epoch 0.
func NewDetector(c *Clock) *Detector {
	if c.host != nil {
		return NewDetectorOf(c, simulated{c.host})
	}
	return NewDetectorOf(c, system{c})
}

// NewDetectorOf returns a detector with the readings of s.
func NewDetectorOf(c *Clock, s Source) *Detector {
	d := &Detector{clock: c, source: s, resumed: make(chan struct{}, 1)}
	d.suspended, _ = s.Suspended()
	d.store(c.Now(), s.Offset())
	d.checked.Store(int64(d.offsetAt))
	return d
}

// Epoch returns the number of detected suspends. State that is invalid after a suspend is stored with the
// epoch of its creation, and is valid only in the same epoch. now is the current instant, read just before
// the call.
//
// It is safe for concurrent use, does not allocate, and takes one or two nanoseconds; one call per 10
// microseconds takes about twice the time of time.Since.
func (d *Detector) Epoch(now mono.Instant) uint64 {
	if int64(now)-d.checked.Load() < int64(checkInterval) {
		return d.epoch.Load()
	}
	return d.check(now)
}

// check compares the offset with the last one. It stores the instant before the comparison: the instant
// after it would hide a suspend in between.
func (d *Detector) check(now mono.Instant) uint64 {
	diff := d.source.Offset() - time.Duration(d.offset.Load())
	if diff.Abs() > d.source.Tolerance() {
		d.classify()
	}
	d.checked.Store(int64(now))
	return d.epoch.Load()
}

// classify determines why the offset has changed, and stores the new one.
func (d *Detector) classify() {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.clock.Now()
	offset := d.stableOffset()
	jump := offset - time.Duration(d.offset.Load())
	if jump.Abs() <= d.source.Tolerance() {
		return // already classified, or interrupted between two readings
	}
	if d.isSuspend(jump) {
		d.epoch.Add(1)
		select {
		case d.resumed <- struct{}{}:
		default:
		}
	}
	d.store(now, offset)
}

// isSuspend distinguishes a suspend from a wall clock that was set.
func (d *Detector) isSuspend(jump time.Duration) bool {
	total, ok := d.source.Suspended()
	if !ok {
		return jump > 0
	}
	before := d.suspended
	d.suspended = total
	return total-before > d.source.Tolerance()
}

// stableOffset returns an offset on which two consecutive readings agree: the process may be interrupted between the
// readings of the two clocks. On a busy computer it returns the fourth reading.
func (d *Detector) stableOffset() time.Duration {
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

// store stores the offset. d.mu is held, or d is not shared yet.
func (d *Detector) store(now mono.Instant, offset time.Duration) {
	d.offset.Store(int64(offset))
	d.offsetAt = now
}

// Watch calls suspended after each suspend, within a second after the resume, until the context ends. It is for one
// goroutine at a time.
func (d *Detector) Watch(ctx context.Context, suspended func()) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	seen := d.epoch.Load()
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.resumed:
		case <-tick.C:
			d.check(d.clock.Now())
			d.followDrift()
		}
		if epoch := d.epoch.Load(); epoch != seen {
			seen = epoch
			suspended()
		}
	}
}

// followDrift updates a slowly drifting offset.
func (d *Detector) followDrift() {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.clock.Now()
	if now.Sub(d.offsetAt) < offsetInterval {
		return
	}
	offset := d.stableOffset()
	if jump := offset - time.Duration(d.offset.Load()); jump.Abs() <= d.source.Tolerance() {
		d.store(now, offset)
	}
}
