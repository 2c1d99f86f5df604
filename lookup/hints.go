package lookup

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// hints bounds how often hints that the table is out of date are passed on. A
// server that dies under load brings them from thousands of callers, and one
// question answers all. It also leaves its keys without an owner until its
// leases have run out, and all that time every attempt of every caller is a
// hint. So the wait doubles as long as hints bring nothing new, less up to a half
// at random so that lookups do not ask together, and is short again when the
// table has changed.
//
// It may be used from many goroutines at once, and takes no lock.
type hints struct {
	longest time.Duration // the wait does not grow beyond
	last    atomic.Pointer[hint]
}

// A hint is one that was passed on. It is immutable.
type hint struct {
	lsn   leasehold.LSN // of the table then
	early mono.Instant  // when another is passed on if the table has changed
	late  mono.Instant  // and if it has not
	wait  time.Duration // from which late was drawn
}

// shortestHint is how long to wait at least.
const shortestHint = 100 * time.Millisecond

// take reports whether a hint at now is to be passed on, with the table at lsn.
func (h *hints) take(now mono.Instant, lsn leasehold.LSN) bool {
	last := h.last.Load()
	wait := shortestHint
	switch {
	case last == nil:
	case lsn != last.lsn:
		if now < last.early {
			return false
		}
	default:
		if now < last.late {
			return false
		}
		wait = max(shortestHint, min(2*last.wait, h.longest))
	}
	return h.last.CompareAndSwap(last, &hint{
		lsn: lsn, wait: wait, early: now.Add(shortestHint),
		late: now.Add(max(shortestHint, wait-rand.N(wait/2))), //nolint:gosec // for a pause
	})
}
