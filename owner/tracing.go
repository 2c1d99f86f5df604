package owner

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// tracer returns the tracer of this package from the process's provider. Without a
// provider spans cost nothing.
func tracer() trace.Tracer { return otel.Tracer("github.com/leasehold-dev/leasehold/owner") }

// endSpan ends a span, and records err if it is not nil.
func endSpan(span trace.Span, err error) {
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

// spanOf begins a span of an owner.
func (o *Owner) spanOf(ctx context.Context, name string) (context.Context, trace.Span) {
	return tracer().Start(ctx, name, trace.WithAttributes(
		attribute.String("leasehold.namespace", string(o.cfg.Namespace)),
		attribute.String("leasehold.owner", string(o.cfg.Name)),
		attribute.String("leasehold.session", o.id.Short()),
	))
}

// A moveTrace measures and traces one move, at its source or its target.
type moveTrace struct {
	metrics   *metrics
	direction string // "in" or "out"
	begun     time.Time
	stoppedAt atomic.Int64 // time from begun to the stop; 0 before the stop
	start     func(parent context.Context) trace.Span
	starting  sync.Once
	span      trace.Span // nil before the first call of trace
	ended     atomic.Bool
}

func (m *migration) newMoveTrace(direction string, r leasehold.Range, t protocol.Ticket, peer *table.Holder) *moveTrace {
	begun := time.Now()
	start := func(parent context.Context) trace.Span {
		_, span := tracer().Start(parent, "leasehold.move."+direction, trace.WithTimestamp(begun), trace.WithAttributes(
			attribute.String("leasehold.namespace", string(m.namespace)),
			attribute.String("leasehold.move", t.Short()),
			attribute.String("leasehold.range", r.String()),
			attribute.String("leasehold.peer", string(peer.Owner)),
		))
		return span
	}
	return &moveTrace{metrics: m.metrics, direction: direction, begun: begun, start: start}
}

// trace returns the span of the move. The first call starts it, as a child of the span in
// parent, which at a target is the span of the source.
func (t *moveTrace) trace(parent context.Context) trace.Span {
	t.starting.Do(func() { t.span = t.start(parent) })
	return t.span
}

// stop records that no server serves the range.
func (t *moveTrace) stop() {
	t.stoppedAt.Store(max(1, int64(time.Since(t.begun))))
	t.trace(context.Background()).AddEvent("stopped")
}

// end records the outcome of the move. Later calls have no effect.
func (t *moveTrace) end(outcome string, records, bytes uint64, why error) {
	if !t.ended.CompareAndSwap(false, true) {
		return
	}
	took := time.Since(t.begun)
	span := t.trace(context.Background())
	span.SetAttributes(attribute.String("leasehold.outcome", outcome))
	if t.direction == "out" {
		span.SetAttributes(attribute.Int64("leasehold.records", int64(records)), attribute.Int64("leasehold.bytes", int64(bytes)))
	}
	if outcome != failed {
		why = nil // a cancelled move is not an error
	}
	endSpan(span, why)
	m := t.metrics
	if m == nil {
		return
	}
	m.moves.WithLabelValues(t.direction, outcome).Inc()
	m.movedRecords.Add(float64(records))
	m.movedBytes.Add(float64(bytes))
	if outcome != moved {
		return
	}
	m.moveDuration.WithLabelValues(t.direction).Observe(took.Seconds())
	if stopped := time.Duration(t.stoppedAt.Load()); stopped > 0 {
		m.unserved.Observe((took - stopped).Seconds())
	}
}

// underWay returns the number of moves in progress, to and from this owner.
func (m *migration) underWay() (in, out int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.arrivals), len(m.departures)
}
