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
	host Host // nil: this computer
}

// A Host is a simulated computer, with clocks of its own. It is safe for concurrent use.
type Host interface {
	// Mono returns the time that its monotonic clock has counted.
	Mono() time.Duration
	// Wall returns the time of its wall clock.
	Wall() time.Time
	// Until returns the time of package time until Mono returns d.
	Until(d time.Duration) time.Duration
	// Suspended returns the total time of its suspends.
	Suspended() time.Duration
}

// New returns a clock that starts near zero.
func New() *Clock { return &Clock{base: time.Now()} }

// NewOn returns a clock of a process on a simulated computer.
func NewOn(h Host) *Clock { return &Clock{host: h} }

// Now returns the current instant. It does not advance while the computer is suspended: see
// [Detector].
func (c *Clock) Now() mono.Instant {
	if c.host != nil {
		return mono.Instant(c.host.Mono())
	}
	return mono.Instant(time.Since(c.base))
}

// Until returns the duration of a timer that fires at an instant.
func (c *Clock) Until(at mono.Instant) time.Duration {
	if c.host != nil {
		return c.host.Until(time.Duration(at))
	}
	return at.Sub(c.Now())
}

// Wall returns the current wall-clock time.
func (c *Clock) Wall() time.Time {
	_, wall := c.Both()
	return wall
}

// Beats returns the beats of the current wall clock. If that is set later, or the computer is suspended,
// the beats of this process differ from those of others until its restart.
func (c *Clock) Beats() mono.Beats {
	now, wall := c.Both()
	return mono.BeatsAt(now.Add(-time.Duration(wall.UnixNano()) % mono.LongestBeat))
}

// Both returns the current instant and wall-clock time from one reading.
func (c *Clock) Both() (mono.Instant, time.Time) {
	if c.host != nil {
		return mono.Instant(c.host.Mono()), c.host.Wall()
	}
	now := time.Now()
	return mono.Instant(now.Sub(c.base)), now
}
