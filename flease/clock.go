package flease

import (
	"context"

	machine "github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
)

// A timepiece shows both clocks of the computer.
type timepiece interface {
	// read returns what both clocks show, and how often the computer was found to
	// have slept. It may be called from many goroutines at once.
	read() (now machine.Time, sleeps uint64)
	// watch calls slept soon after each sleep, until the context ends.
	watch(ctx context.Context, slept func())
}

// systemTime is the computer's own.
type systemTime struct {
	clock    *clock.Clock
	detector *clock.Detector
}

func newSystemTime() *systemTime {
	c := clock.New()
	return &systemTime{clock: c, detector: clock.NewDetector(c)}
}

func (s *systemTime) read() (machine.Time, uint64) {
	now, wall := s.clock.Both()
	return machine.Time{Mono: now, Wall: machine.Wall(wall.UnixNano())}, s.detector.Epoch(now)
}

func (s *systemTime) watch(ctx context.Context, slept func()) { s.detector.Watch(ctx, slept) }
