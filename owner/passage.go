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

// tracer makes the spans of this package, with the provider of the process. Without
// one they are nothing, and cost as much.
func tracer() trace.Tracer { return otel.Tracer("github.com/leasehold-dev/leasehold/owner") }

// concluded ends a span, and says what went wrong if anything did.
func concluded(span trace.Span, err error) {
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

// A passage is a move of state as it is measured and traced, from here or to here.
type passage struct {
	metrics   *metrics
	direction string // "in" or "out"
	begun     time.Time
	stopped   atomic.Int64 // when the range ceased to be served, after begun; 0 if it has not
	start     func(parent context.Context) trace.Span
	starting  sync.Once
	span      trace.Span // nil before it was started: see trace
	ended     atomic.Bool
}

func (m *migration) pass(direction string, r leasehold.Range, t protocol.Ticket, peer *table.Holder) *passage {
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
	return &passage{metrics: m.metrics, direction: direction, begun: begun, start: start}
}

// trace returns the span of a move, which it starts at the first call, below another that
// may be of the other side. A target does not know that one before the source has come.
func (p *passage) trace(parent context.Context) trace.Span {
	p.starting.Do(func() { p.span = p.start(parent) })
	return p.span
}

// stop says that nobody serves the range from now on.
func (p *passage) stop() {
	p.stopped.Store(max(1, int64(time.Since(p.begun))))
	p.trace(context.Background()).AddEvent("stopped")
}

// end says what became of the move. The first word counts.
func (p *passage) end(outcome string, records, bytes uint64, why error) {
	if !p.ended.CompareAndSwap(false, true) {
		return
	}
	took := time.Since(p.begun)
	span := p.trace(context.Background())
	span.SetAttributes(attribute.String("leasehold.outcome", outcome))
	if p.direction == "out" {
		span.SetAttributes(attribute.Int64("leasehold.records", int64(records)), attribute.Int64("leasehold.bytes", int64(bytes)))
	}
	if outcome != failed {
		why = nil // somebody else knows better what is wanted
	}
	concluded(span, why)
	m := p.metrics
	if m == nil {
		return
	}
	m.moves.WithLabelValues(p.direction, outcome).Inc()
	m.movedRecords.Add(float64(records))
	m.movedBytes.Add(float64(bytes))
	if outcome != moved {
		return
	}
	m.moveDuration.WithLabelValues(p.direction).Observe(took.Seconds())
	if stopped := time.Duration(p.stopped.Load()); stopped > 0 {
		m.unserved.Observe((took - stopped).Seconds())
	}
}

// underWay returns how many moves to here and from here there are.
func (m *migration) underWay() (in, out int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.arrivals), len(m.departures)
}
