// Package clock reads the monotonic clock of the process for the shells, and detects suspends of the
// computer.
package clock

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// A Clock returns instants of one process. Instants of different clocks are not comparable. It is safe for concurrent
// use.
type Clock struct {
	base time.Time
}

// New returns a clock that starts near zero.
func New() *Clock { return &Clock{base: time.Now()} }

// Now returns the current instant. It does not advance while the computer is suspended: see
// [Detector].
func (c *Clock) Now() mono.Instant { return mono.Instant(time.Since(c.base)) }

// Beats returns the beats of the current wall clock. If that is set later, or the computer is suspended,
// the beats of this process differ from those of others until its restart.
func (c *Clock) Beats() mono.Beats {
	now, wall := c.Both()
	return mono.BeatsAt(now.Add(-time.Duration(wall.UnixNano()) % mono.LongestBeat))
}

// Both returns the current instant and wall-clock time from one reading.
func (c *Clock) Both() (mono.Instant, time.Time) {
	now := time.Now()
	return mono.Instant(now.Sub(c.base)), now
}
