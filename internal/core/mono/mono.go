// Package mono is the time that decides leases: instants on one process's
// monotonic clock.
//
// An Instant means nothing outside the process that read it. It is a type of
// its own so that the compiler keeps wall-clock time, and the instants of
// other processes, out of every decision about a lease. Nothing here reads a
// clock: the shells do that, and hand instants to the machines.
package mono

import (
	"fmt"
	"math"
	"time"
)

// An Instant is a point on one process's monotonic clock, in nanoseconds from
// an origin that is arbitrary but fixed for the process.
type Instant int64

// Never is after every instant that a clock can show.
const Never Instant = math.MaxInt64

// Add returns the instant d later, or earlier if d is negative. It never wraps:
// beyond the last instant is Never, beyond the first is the first. Never stays
// Never, whatever is added.
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

// Sub returns the time from o to i, or the longest duration of the right sign
// if that is too long for one: a wait for Never must not come out negative.
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

// String writes the instant as seconds since the clock's origin.
func (i Instant) String() string {
	if i == Never {
		return "never"
	}
	return fmt.Sprintf("%.3fs", float64(i)/1e9)
}

// A Drift bounds how much faster one clock may run than another: while one
// advances by d, no other advances by more than d times the drift. It is at
// least 1. A Drift of 1.2 covers two hosts that are slewed at 1/12 in
// opposite directions (13/12 : 11/12 = 1.18).
type Drift float64

// Stretch returns how long to wait on one's own clock to be sure that d has
// passed on any other: d times the drift, rounded up.
//
// A wait that is too long costs availability, one that is too short costs
// safety. So the result is never shorter than d, not even for a Drift that is
// no drift (the zero value, NaN), and one too long for a Duration is the
// longest there is.
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
