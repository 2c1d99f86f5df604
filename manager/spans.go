package manager

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// spans are the trace spans of a manager: failovers and moves. Without a trace provider they cost
// next to nothing. They are touched only within a step of the machine.
type spans struct {
	failover trace.Span // from the loss of the last leader until this one serves all namespaces; nil otherwise
	orphaned time.Time  // since when no leader is known; zero if one is
	before   string     // the last leader
}

func tracer() trace.Tracer { return otel.Tracer("github.com/leasehold-dev/leasehold/manager") }

// startFailover starts the span of a failover, which ends when all namespaces are served.
func (s *spans) startFailover(m *Manager, term leasehold.Term) {
	s.end("another term has begun")
	began := s.orphaned
	if began.IsZero() {
		began = time.Now()
	}
	_, s.failover = tracer().Start(context.Background(), "leasehold.failover", trace.WithTimestamp(began), trace.WithAttributes(
		attribute.String("leasehold.manager", m.cfg.Advertise),
		attribute.String("leasehold.leader.before", s.before),
		attribute.Int64("leasehold.term", int64(term)),
	))
	s.failover.AddEvent("elected")
}

// check updates the spans after every step.
func (s *spans) check(m *Manager, now mono.Instant) {
	switch leader := string(m.node.Living(now)); {
	case leader == "" && s.orphaned.IsZero():
		s.orphaned = time.Now()
	case leader != "":
		s.orphaned, s.before = time.Time{}, leader
	}
	switch {
	case s.failover == nil:
	case !m.node.Leads(now):
		s.end("this manager has ceased to lead")
	case s.allServed(m):
		s.failover.SetAttributes(attribute.Int("leasehold.namespaces", len(m.node.Catalog().Namespaces)))
		s.end("")
	}
}

// allServed reports whether all namespaces without a problem are served.
func (s *spans) allServed(m *Manager) bool {
	catalog := m.node.Catalog()
	if catalog == nil {
		return false
	}
	for _, n := range catalog.Namespaces {
		if !n.Deleted && m.node.Manager(n.Name) == nil && m.node.Problem(n.Name) == nil {
			return false
		}
	}
	return true
}

// end ends the span of a failover, if there is one.
func (s *spans) end(why string) {
	if s.failover == nil {
		return
	}
	if why != "" {
		s.failover.SetStatus(codes.Error, why)
	}
	s.failover.End()
	s.failover = nil
}

// recordMove records the span of a move that has ended.
func (s *spans) recordMove(m *Manager, ns leasehold.Namespace, n machine.Note) {
	outcome := outcomeOf(n.What)
	if outcome == "" || n.Took == 0 {
		return
	}
	ended := time.Now()
	_, span := tracer().Start(context.Background(), "leasehold.move", trace.WithTimestamp(ended.Add(-n.Took)), trace.WithAttributes(
		attribute.String("leasehold.namespace", string(ns)),
		attribute.String("leasehold.manager", m.cfg.Advertise),
		attribute.String("leasehold.owner", string(n.Owner)),
		attribute.String("leasehold.peer", string(n.To)),
		attribute.String("leasehold.range", n.Range.String()),
		attribute.String("leasehold.outcome", outcome),
	))
	if outcome != moveDone { // a completed move's size is in the span of its source
		span.SetAttributes(attribute.Int64("leasehold.records", int64(n.Records)), attribute.Int64("leasehold.bytes", int64(n.Bytes)))
		_, text := describe(n)
		span.SetStatus(codes.Error, text)
	}
	span.End(trace.WithTimestamp(ended))
}
