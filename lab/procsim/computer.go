package procsim

import (
	"sync"
	"time"
)

// A computer has the clocks of one process, and of its successors with the same name. It is a clock.Host.
//
// The monotonic clock has a rate, and stands still while the computer is suspended. The wall clock advances during
// suspends, and can be set. It has the same rate, unless it is synchronized.
type computer struct {
	mu        sync.Mutex
	since     time.Time     // true time of mono; after the present if the computer is suspended
	mono      time.Duration // since boot
	rate      float64
	ahead     time.Duration // the wall clock minus true time, apart from the rate
	synced    bool          // the wall clock is synchronized
	suspended time.Duration
}

func newComputer(rate float64, ahead time.Duration, synced bool) *computer {
	return &computer{since: time.Now(), mono: time.Hour, rate: rate, ahead: ahead, synced: synced}
}

// Mono implements clock.Host.
func (c *computer) Mono() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at(time.Now())
}

func (c *computer) at(now time.Time) time.Duration {
	return c.mono + time.Duration(float64(max(0, now.Sub(c.since)))*c.rate)
}

// Wall implements clock.Host.
func (c *computer) Wall() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	return now.Add(c.ahead + c.drifted(now))
}

// drifted is how far the wall clock has drifted since the last suspend.
func (c *computer) drifted(now time.Time) time.Duration {
	if c.synced {
		return 0
	}
	return time.Duration(float64(max(0, now.Sub(c.since))) * (c.rate - 1))
}

// Until implements clock.Host.
func (c *computer) Until(d time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	left := max(0, d-c.at(now))
	if left > 1000*time.Hour {
		return left
	}
	// Rounded up: a timer that fires early would be set again for no time at all.
	return max(0, c.since.Sub(now)) + time.Duration(float64(left)/c.rate) + 1
}

// Suspended implements clock.Host.
func (c *computer) Suspended() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.suspended
}

// Uptime is the time since boot, including suspends.
func (c *computer) Uptime() time.Duration { return c.Mono() + c.Suspended() }

// step sets the wall clock.
func (c *computer) step(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += by
}

// suspend stops the monotonic clock for a time.
func (c *computer) suspend(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.ahead += c.drifted(now)
	c.mono, c.since = c.at(now), now.Add(d)
	c.suspended += d
}
