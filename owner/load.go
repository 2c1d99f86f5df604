package owner

import (
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/internal/mono"
	"github.com/leasehold-dev/leasehold/internal/protocol"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A meter turns counts into work per second.
type meter struct {
	counted atomic.Uint64

	// The driver's goroutine alone has the rest.
	last uint64
	at   mono.Instant
	rate float64
}

// shortest is the shortest time over which a rate means something: requests that
// follow on each other at once have the same.
const shortest = 500 * time.Millisecond

func (m *meter) read(now mono.Instant) float64 {
	if passed := now.Sub(m.at); passed >= shortest {
		counted := m.counted.Load()
		m.rate = float64(counted-m.last) / passed.Seconds()
		m.last, m.at = counted, now
	}
	return m.rate
}

// Count adds to the work that this server has done: 1 for a request, say, or
// what it cost. The manager hears of it per second with every renewal; "leasehold
// owners" shows it. It costs an atomic addition.
func (o *Owner) Count(cost uint64) { o.meter.counted.Add(cost) }

// request writes what the machine says, and adds the load.
func (o *Owner) request(now mono.Instant, r *protocol.LeaseRequest) *leaseholdv1.HoldRequest {
	out := wire.FromLeaseRequest(r)
	out.Load = o.meter.read(now)
	return out
}
