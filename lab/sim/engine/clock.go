package engine

import "math"

// A Rate is the speed of a clock, in millionths of true time.
type Rate int64

// TrueRate is the rate of true time.
const TrueRate Rate = 1_000_000

// A Clock is a clock of a process, monotonic or wall. It has its own rate and its own origin. At rate 0 it
// stands still, like a monotonic clock of a suspended computer.
type Clock[T ~int64] struct {
	since int64 // true time of the last change
	base  T     // the reading at that time
	rate  Rate
}

// NewClock returns a clock with a reading at a true time.
func NewClock[T ~int64](now int64, shows T, r Rate) Clock[T] {
	return Clock[T]{since: now, base: shows, rate: r}
}

// At returns the reading at a true time.
func (c *Clock[T]) At(now int64) T {
	d, r := now-c.since, int64(c.rate)
	return c.base + T(d/1e6*r+d%1e6*r/1e6)
}

// When returns the first true time at which the reading is i or later, at the current rate; MaxInt64 if there
// is none.
func (c *Clock[T]) When(i T) int64 {
	if i <= c.base {
		return c.since
	}
	d, r := int64(i-c.base), int64(c.rate)
	if int64(i) == math.MaxInt64 || r == 0 || d/r > math.MaxInt64/2_000_000 {
		return math.MaxInt64
	}
	t := c.since + d/r*1e6 + d%r*1e6/r
	for c.At(t) < i {
		t++
	}
	return t
}

// Since returns the true time of the last change of the clock.
func (c *Clock[T]) Since() int64 { return c.since }

// Rate returns the rate of the clock.
func (c *Clock[T]) Rate() Rate { return c.rate }

// Run changes the rate at a true time.
func (c *Clock[T]) Run(now int64, r Rate) { *c = Clock[T]{since: now, base: c.At(now), rate: r} }

// Set sets the clock at a true time.
func (c *Clock[T]) Set(now int64, to T) { *c = Clock[T]{since: now, base: to, rate: c.rate} }
