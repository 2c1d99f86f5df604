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

// A LoadSource selects the measure of a server's load.
type LoadSource int

// The sources.
const (
	LoadChecks   LoadSource = iota // each successful Check is one request
	LoadReported                   // only the costs that the application reports with Report
)

// MaxCost is the maximum cost of one Report.
const MaxCost = loadmeter.MaxCost

// Report adds the cost of work on a key to the load, in a unit of the application that
// is the same for all servers of the namespace, such as nanoseconds of
// processor time, or bytes. With a unit such as processor seconds, set the namespace's minimum load: balancing
// starts at 50 per second and owner by default. Renewals report the sums per second, per range
// and for the hottest keys, to the manager. Config.Load must be
// LoadReported.
//
// An invalid cost (negative, not a number or above
// MaxCost) is ignored and logged once a minute at most. A cost on a key
// that is not held is ignored, too.
//
// Report is safe for concurrent use. It takes about 10 ns: at a high rate the meter samples
// the costs.
func (o *Owner) Report(key leasehold.Key, cost float64) {
	if !o.meter.Add(key, cost) {
		o.warnings.warn(o.clock.Now(), o.notes.logger, o.cfg.Load, key, cost)
	}
}

// reportInterval is the minimum interval of reports of the load per range. Requests in between
// contain only the sum.
const reportInterval = 5 * time.Second

// loads is the last report of the load. It is only for the driver's goroutine.
type loads struct {
	held  []leasehold.Lease  // the leases of the meter
	at    mono.Instant       // of the last measurement
	wire  *leaseholdv1.Loads // the last measurement; nil if it is empty
	total float64
}

// request encodes a request, and adds the load.
func (o *Owner) request(now mono.Instant, r *protocol.LeaseRequest) *leaseholdv1.HoldRequest {
	l := &o.loads
	if !protocol.SameLeases(l.held, r.Leases) {
		o.meter.Hold(now, r.Leases)
		l.held = r.Leases
	}
	if now.Sub(l.at) >= reportInterval {
		l.measure(now, o.meter)
		o.metrics.addWork(o.meter.Taken())
	}
	out := wire.FromLeaseRequest(r)
	out.Load = l.total
	if now == l.at { // the same for all managers of a broadcast request
		out.Loads = l.wire
	}
	return out
}

func (l *loads) measure(now mono.Instant, m *loadmeter.Meter) {
	report, reported := m.Loads(now), len(l.wire.GetStarts())
	l.at, l.wire, l.total = now, wire.FromLoads(report), 0
	if len(report.Cells) == 0 && reported == 0 {
		l.wire = nil // the leader already has an empty report
	}
	for _, c := range report.Cells {
		l.total = min(l.total+c.Rate, partition.MaxRate)
	}
}

// costWarnings logs invalid costs, once a minute at most. It is safe for concurrent use.
type costWarnings struct {
	next    atomic.Int64 // instant of the next log line
	skipped atomic.Uint64
}

// warn logs an invalid cost, with the caller of Report.
func (w *costWarnings) warn(now mono.Instant, logger *slog.Logger, source LoadSource, key leasehold.Key, cost float64) {
	next := w.next.Load()
	if int64(now) < next || !w.next.CompareAndSwap(next, int64(now.Add(repeatInterval))) {
		w.skipped.Add(1)
		return
	}
	why := "want 0 to " + strconv.FormatFloat(MaxCost, 'g', -1, 64)
	if source != LoadReported {
		why = "Config.Load is not LoadReported: checks are counted instead"
	}
	_, file, line, _ := runtime.Caller(2)
	logger.Warn("reported cost ignored: "+why, "cost", cost, "key", key.String(),
		"caller", file+":"+strconv.Itoa(line), "ignored before", w.skipped.Swap(0))
}
