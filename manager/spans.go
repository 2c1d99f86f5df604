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

// spans are what a manager lets the process's trace provider know: that it takes over,
// and how moves of state went. Without a provider they are nothing, and cost as much.
// They are touched only within a step of the machine.
type spans struct {
	failover trace.Span // from when there was no leader until we serve all namespaces; nil otherwise
	orphaned time.Time  // since when no leader is known; zero if one is
	before   string     // the last one that was
}

func tracer() trace.Tracer { return otel.Tracer("github.com/leasehold-dev/leasehold/manager") }

// lead begins the span of a failover.
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

// check runs after every step.
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

// served reports whether all namespaces are led that can be.
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

// moved makes the span of a move that has ended.
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
	if outcome != moveDone { // of one that is done its source says how much it was
		span.SetAttributes(attribute.Int64("leasehold.records", int64(n.Records)), attribute.Int64("leasehold.bytes", int64(n.Bytes)))
		_, text := describe(n)
		span.SetStatus(codes.Error, text)
	}
	span.End(trace.WithTimestamp(ended))
}
