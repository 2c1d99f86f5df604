package fleasesim

import "math"

// A rate is how fast a clock runs, in millionths of true time.
type rate int64

// The rates of monotonic clocks that are within the drift bound of each other:
// their ratio is the bound, 1.2.
const (
	trueRate rate = 1_000_000
	slowest  rate = 920_000
	fastest  rate = 1_104_000
)

// A clock is a monotonic clock, or a wall clock: it runs at a rate of its own,
// which may be 0, and may be set.
type clock struct {
	since int64 // true time of the last change
	base  int64 // what it showed then
	rate  rate
}

// at returns what the clock shows at a true time.
func (c *clock) at(now int64) int64 {
	d, r := now-c.since, int64(c.rate)
	return c.base + d/1e6*r + d%1e6*r/1e6
}

// when returns the first true time at which the clock shows i or later, if
// nothing changes it.
func (c *clock) when(i int64) int64 {
	if i <= c.base {
		return c.since
	}
	d, r := i-c.base, int64(c.rate)
	if i == math.MaxInt64 || r == 0 || d/r > math.MaxInt64/2_000_000 {
		return math.MaxInt64
	}
	t := c.since + d/r*1e6 + d%r*1e6/r
	for c.at(t) < i {
		t++
	}
	return t
}

// run changes the rate at a true time.
func (c *clock) run(now int64, r rate) { *c = clock{since: now, base: c.at(now), rate: r} }

// set sets the clock at a true time.
func (c *clock) set(now, to int64) { *c = clock{since: now, base: to, rate: c.rate} }
