package byrecord

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// hostClocks are the wall clock and the uptime of the machine, as last reported and extrapolated by
// the monotonic clock.
type hostClocks struct {
	wall   int64        // last reported wall clock, 0 if there was none,
	wallAt mono.Instant // at this instant
	// uptime is the machine's uptime at uptimeAt; 0 if unknown.
	uptime   time.Duration
	uptimeAt mono.Instant
	woken    bool // the local clock has stopped during a sleep: uptimes prove nothing any more
}

// unix returns the extrapolated wall clock, 0 if unknown.
func (c *hostClocks) unix(now mono.Instant) int64 {
	if c.wall == 0 {
		return 0
	}
	return c.wall + int64(now.Sub(c.wallAt)/time.Second)
}

// upFor returns the extrapolated uptime of the machine, 0 if unknown.
func (c *hostClocks) upFor(now mono.Instant) time.Duration {
	if c.uptime == 0 {
		return 0
	}
	return c.uptime + now.Sub(c.uptimeAt)
}
