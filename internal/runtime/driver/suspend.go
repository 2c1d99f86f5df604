package driver

import (
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
)

// DetectSuspend wraps a machine so that it processes an event after each suspend of the computer before all
// other events: its instants are then wrong by the duration of the suspend.
func DetectSuspend[E, A any](m Machine[E, A], d *clock.Detector, event E) *SuspendAware[E, A] {
	return &SuspendAware[E, A]{Machine: m, detector: d, event: event}
}

// SuspendAware is a machine with suspend detection. Like the machine, it is not safe for concurrent use.
type SuspendAware[E, A any] struct {
	Machine[E, A]
	detector *clock.Detector
	event    E
	epoch    uint64
	out      []A
}

// Epoch returns the detector's epoch of the last step. The machine's decisions are invalid in a later epoch.
func (w *SuspendAware[E, A]) Epoch() uint64 { return w.epoch }

// Step checks the detector and runs Step of the machine.
func (w *SuspendAware[E, A]) Step(now mono.Instant, event E) ([]A, mono.Instant) {
	suspended := w.detect(now)
	actions, wake := w.Machine.Step(now, event)
	return w.join(suspended, actions), wake
}

// Advance checks the detector and runs Advance of the machine.
func (w *SuspendAware[E, A]) Advance(now mono.Instant) ([]A, mono.Instant) {
	suspended := w.detect(now)
	actions, wake := w.Machine.Advance(now)
	return w.join(suspended, actions), wake
}

// detect processes a suspend, and reports whether there was one.
func (w *SuspendAware[E, A]) detect(now mono.Instant) bool {
	epoch := w.detector.Epoch(now)
	if epoch == w.epoch {
		return false
	}
	w.epoch = epoch
	actions, _ := w.Machine.Step(now, w.event)
	w.out = append(w.out[:0], actions...)
	return true
}

func (w *SuspendAware[E, A]) join(suspended bool, actions []A) []A {
	if !suspended {
		return actions
	}
	w.out = append(w.out, actions...)
	return w.out
}
