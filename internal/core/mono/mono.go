// Package mono has the time type for all lease decisions: instants of one process's monotonic
// clock.
//
// An Instant is meaningless outside the process that read it. It is a separate type, so the
// compiler keeps wall-clock time and the instants of other processes out of lease decisions. This
// package reads no clock: the shells do, and pass instants to the machines.
package mono

import (
	"fmt"
	"math"
	"time"
)

// An Instant is a point on one process's monotonic clock, in nanoseconds from
// an origin that is arbitrary but fixed for the process.
type Instant int64

// Never is later than any instant of a clock.
const Never Instant = math.MaxInt64

// Add returns the instant d later, or earlier if d is negative. It saturates instead of wrapping.
// Never plus any duration is Never.
func (i Instant) Add(d time.Duration) Instant {
	sum := i + Instant(d)
	switch {
	case i == Never || d > 0 && sum < i:
		return Never
	case d < 0 && sum > i:
		return math.MinInt64
	}
	return sum
}

// Sub returns the time from o to i. It saturates instead of wrapping, so a wait for Never is never
// negative.
func (i Instant) Sub(o Instant) time.Duration {
	diff := time.Duration(i - o)
	switch {
	case i > o && (diff < 0 || i == Never):
		return math.MaxInt64
	case i < o && (diff > 0 || o == Never):
		return math.MinInt64
	}
	return diff
}

// String formats the instant as seconds since the clock's origin.
func (i Instant) String() string {
	if i == Never {
		return "never"
	}
	return fmt.Sprintf("%.3fs", float64(i)/1e9)
}

// A Drift bounds the ratio of two clock rates: while one clock advances by d, no other advances by
// more than d times the drift. It is at least 1. A Drift of 1.2 covers two hosts that are slewed at
// 1/12 in opposite directions (13/12 : 11/12 = 1.18).
type Drift float64

// Stretch returns the local wait after which d has passed on every other clock: d times the drift,
// rounded up.
//
// A wait that is too long costs availability, one that is too short costs safety. So the result is
// never shorter than d, even for an invalid Drift (zero, NaN), and it saturates at the longest
// Duration.
func (f Drift) Stretch(d time.Duration) time.Duration {
	stretched := math.Ceil(float64(d) * float64(f))
	switch {
	case d <= 0 || !(f > 1):
		return d
	case stretched >= math.MaxInt64:
		return math.MaxInt64
	}
	return max(d, time.Duration(stretched))
}
