package owner

import (
	"log/slog"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/loadmeter"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/partition"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A LoadSource says what counts as the work of a server.
type LoadSource int

// The sources.
const (
	LoadChecks   LoadSource = iota // each Check that succeeds is one request
	LoadReported                   // what the application says with Report, and nothing else
)

// MaxCost is the most that one Report can say.
const MaxCost = loadmeter.MaxCost

// Report says what work on a key has cost, in a unit of the application's
// choosing that is the same for all servers of the namespace: nanoseconds of
// processor time, or bytes. The manager hears of the sums per second, per range
// and for the hottest keys, about every renewal. Config.Load must be
// LoadReported.
//
// A cost that makes no sense, because it is negative, not a number or above
// MaxCost, is ignored; the log says so, once a minute at most. A cost on a key
// that is not held is ignored too.
//
// Report may be called from many goroutines at once. It takes some 10 ns: of many
// costs only some are looked at, and count for the others.
func (o *Owner) Report(key leasehold.Key, cost float64) {
	if !o.meter.Add(key, cost) {
		o.nonsense.complain(o.clock.Now(), o.notes.logger, o.cfg.Load, key, cost)
	}
}

// reportEvery is how often the leader is told how the load divides, at most. In
// between it is told the sum.
const reportEvery = 5 * time.Second

// loads is what the leader has been told of the load. It belongs to the driver's
// goroutine.
type loads struct {
	held  []leasehold.Lease  // as the meter knows it
	at    mono.Instant       // when it was last asked
	wire  *leaseholdv1.Loads // what it said then; nil if that was nothing
	total float64
}

// request writes what the machine says, and adds the load.
func (o *Owner) request(now mono.Instant, r *protocol.LeaseRequest) *leaseholdv1.HoldRequest {
	l := &o.loads
	if !protocol.SameLeases(l.held, r.Leases) {
		o.meter.Hold(now, r.Leases)
		l.held = r.Leases
	}
	if now.Sub(l.at) >= reportEvery {
		l.measure(now, o.meter)
		o.metrics.worked(o.meter.Taken())
	}
	out := wire.FromLeaseRequest(r)
	out.Load = l.total
	if now == l.at { // all managers that are asked at once are told the same
		out.Loads = l.wire
	}
	return out
}

func (l *loads) measure(now mono.Instant, m *loadmeter.Meter) {
	report, said := m.Loads(now), len(l.wire.GetStarts())
	l.at, l.wire, l.total = now, wire.FromLoads(report), 0
	if len(report.Cells) == 0 && said == 0 {
		l.wire = nil // still nothing
	}
	for _, c := range report.Cells {
		l.total = min(l.total+c.Rate, partition.MaxRate)
	}
}

// complaints write into the log that an application reports nonsense, once a
// minute. They may be made from many goroutines at once.
type complaints struct {
	next  atomic.Int64 // the instant from which on the next one is written
	since atomic.Uint64
}

// complain is called by Report.
func (c *complaints) complain(now mono.Instant, logger *slog.Logger, source LoadSource, key leasehold.Key, cost float64) {
	next := c.next.Load()
	if int64(now) < next || !c.next.CompareAndSwap(next, int64(now.Add(repeatAfter))) {
		c.since.Add(1)
		return
	}
	why := "want 0 to " + strconv.FormatFloat(MaxCost, 'g', -1, 64)
	if source != LoadReported {
		why = "Config.Load is not LoadReported: checks are counted instead"
	}
	_, file, line, _ := runtime.Caller(2)
	logger.Warn("a reported cost is ignored: "+why, "cost", cost, "key", key.String(),
		"caller", file+":"+strconv.Itoa(line), "ignored before", c.since.Swap(0))
}
