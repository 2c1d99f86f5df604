// Package clock reads this process's monotonic clock, for the shells around
// the machines, and finds out that the computer was suspended.
package clock

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// A Clock gives the instants of one process. Instants of different clocks must
// not be mixed. It may be used from many goroutines at once.
type Clock struct {
	base time.Time
}

// New returns a clock that starts near zero.
func New() *Clock { return &Clock{base: time.Now()} }

// Now returns the present instant. It stands still while the computer is
// suspended: see [Detector].
func (c *Clock) Now() mono.Instant { return mono.Instant(time.Since(c.base)) }

// Beats returns those of the wall clock as it is now. It may be set later, or the computer
// may sleep; they are then not those of others any more, until the process starts again.
func (c *Clock) Beats() mono.Beats {
	now, wall := c.Both()
	return mono.BeatsAt(now.Add(-time.Duration(wall.UnixNano()) % mono.LongestBeat))
}

// Both returns the present instant and the wall clock's time, from one reading.
func (c *Clock) Both() (mono.Instant, time.Time) {
	now := time.Now()
	return mono.Instant(now.Sub(c.base)), now
}
