package driver

import (
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
)

// Woken returns a machine that is told of a sleep of the computer before
// anything else happens to it: what it believes about time is then no longer
// so, and an event that came first would be judged by it.
func Woken[E, A any](m Machine[E, A], d *clock.Detector, slept E) *Wakeful[E, A] {
	return &Wakeful[E, A]{Machine: m, detector: d, slept: slept}
}

// A Wakeful machine is one that hears of a sleep first. Like the machine, it is
// not safe for concurrent use.
type Wakeful[E, A any] struct {
	Machine[E, A]
	detector *clock.Detector
	slept    E
	epoch    uint64
	out      []A
}

// Epoch returns the detector's epoch that the machine knows of. What the machine
// decides is good for that epoch, and for no later one.
func (w *Wakeful[E, A]) Epoch() uint64 { return w.epoch }

// Step is the machine's, after a look at the detector.
func (w *Wakeful[E, A]) Step(now mono.Instant, event E) ([]A, mono.Instant) {
	told := w.tell(now)
	actions, wake := w.Machine.Step(now, event)
	return w.join(told, actions), wake
}

// Advance is the machine's, after a look at the detector.
func (w *Wakeful[E, A]) Advance(now mono.Instant) ([]A, mono.Instant) {
	told := w.tell(now)
	actions, wake := w.Machine.Advance(now)
	return w.join(told, actions), wake
}

// tell lets the machine know of a sleep, and reports whether there was one.
func (w *Wakeful[E, A]) tell(now mono.Instant) bool {
	epoch := w.detector.Epoch(now)
	if epoch == w.epoch {
		return false
	}
	w.epoch = epoch
	actions, _ := w.Machine.Step(now, w.slept)
	w.out = append(w.out[:0], actions...)
	return true
}

func (w *Wakeful[E, A]) join(told bool, actions []A) []A {
	if !told {
		return actions
	}
	w.out = append(w.out, actions...)
	return w.out
}
