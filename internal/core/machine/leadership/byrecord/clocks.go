package byrecord

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// hostClocks are the wall clock and the uptime of the machine, as last reported. They run on at the rate of the
// monotonic clock.
type hostClocks struct {
	wall   int64        // what the wall clock said, 0 if it never did,
	wallAt mono.Instant // at this instant
	// uptime is for how long the machine had run at uptimeAt; 0 if that is not known.
	uptime   time.Duration
	uptimeAt mono.Instant
	woken    bool // our clock has stood still: uptimes prove nothing any more
}

// unix is what the wall clock says, as far as we know: it runs on from what it last said.
func (c *hostClocks) unix(now mono.Instant) int64 {
	if c.wall == 0 {
		return 0
	}
	return c.wall + int64(now.Sub(c.wallAt)/time.Second)
}

// upFor is for how long the machine has run, as far as we know.
func (c *hostClocks) upFor(now mono.Instant) time.Duration {
	if c.uptime == 0 {
		return 0
	}
	return c.uptime + now.Sub(c.uptimeAt)
}
