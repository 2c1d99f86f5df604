package lookup

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// hints is the rate limit of hints that the table is stale. When a
// server crashes under load, thousands of callers send hints, and one
// request is enough. Its keys have no owner until its
// leases expire, and every attempt of every caller is a
// hint meanwhile. So the interval doubles while the table does not change, minus a random
// part of up to a half, so that lookups do not send requests at the same time. A change of the
// table resets it.
//
// It is safe for concurrent use and takes no lock.
type hints struct {
	maxInterval time.Duration
	last        atomic.Pointer[hint]
}

// A hint is the last allowed one. It is immutable.
type hint struct {
	lsn      leasehold.LSN // of the table
	early    mono.Instant  // of the next hint if the table has changed
	late     mono.Instant  // of the next hint if the table has not changed
	interval time.Duration // before jitter
}

const minHintInterval = 100 * time.Millisecond

// allow reports whether a hint at now may cause a request, with the table at lsn.
func (h *hints) allow(now mono.Instant, lsn leasehold.LSN) bool {
	last := h.last.Load()
	interval := minHintInterval
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
		interval = max(minHintInterval, min(2*last.interval, h.maxInterval))
	}
	return h.last.CompareAndSwap(last, &hint{
		lsn: lsn, interval: interval, early: now.Add(minHintInterval),
		late: now.Add(max(minHintInterval, interval-rand.N(interval/2))), //nolint:gosec // jitter
	})
}
