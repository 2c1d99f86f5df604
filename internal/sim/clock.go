package sim

import (
	"math"

	"github.com/leasehold-dev/leasehold/internal/mono"
)

// A rate is how fast a clock runs, in millionths of true time.
type rate int64

const trueRate rate = 1_000_000

// A clock is a process's monotonic clock: it runs at a rate of its own, from
// an origin that means nothing to anyone else. A rate of 0 is a clock that
// stands still, as it does while a computer is suspended.
type clock struct {
	since int64        // true time of the last change of rate
	base  mono.Instant // what it showed then
	rate  rate
}

// at returns what the clock shows at a true time.
func (c *clock) at(now int64) mono.Instant {
	d, r := now-c.since, int64(c.rate)
	return c.base + mono.Instant(d/1e6*r+d%1e6*r/1e6)
}

// when returns the first true time at which the clock shows i or later.
func (c *clock) when(i mono.Instant) int64 {
	if i <= c.base {
		return c.since
	}
	if i == mono.Never || c.rate == 0 {
		return math.MaxInt64
	}
	d, r := int64(i-c.base), int64(c.rate)
	if d/r > math.MaxInt64/2_000_000 {
		return math.MaxInt64
	}
	t := c.since + d/r*1e6 + d%r*1e6/r
	for c.at(t) < i {
		t++
	}
	return t
}

// run changes the rate at a true time.
func (c *clock) run(now int64, r rate) {
	c.base = c.at(now)
	c.since = now
	c.rate = r
}

// beats are those of a host that starts. There are none in most worlds: on beats less happens that
// nobody has thought of.
func (w *world) beats(now mono.Instant) mono.Beats {
	if w.seed%4 != 0 {
		return mono.Beats{}
	}
	return mono.BeatsAt(now)
}
