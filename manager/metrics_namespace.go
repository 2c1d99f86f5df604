package manager

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/scrape"
	"github.com/leasehold-dev/leasehold/partition"
)

// perNamespace are the metrics with a namespace as label.
type perNamespace struct {
	joins, granted, renewed, commits, moves, policyFailures, losses, outages *prometheus.CounterVec
	moveDuration, policy                                                     *prometheus.HistogramVec
}

func newPerNamespace(f *scrape.Family) perNamespace {
	return perNamespace{
		joins:          f.Counters("joins_total", "Owners that became members.", "namespace"),
		granted:        f.Counters("grants_total", "Leases granted, with or without a transfer of state.", "namespace"),
		renewed:        f.Counters("renewals_total", "Leases renewed.", "namespace"),
		commits:        f.Counters("changes_total", "Changes of the lease table.", "namespace"),
		losses:         f.Counters("losses_total", "Losses of state, by cause: leases that ended without a transfer. Cause \"released\" are recalls, \"expired\" are owners that failed or were partitioned.", "namespace", "cause"),
		outages:        f.Counters("outages_total", "Outages: all owners with leases were silent for longer than a lease, and stayed in the table with suspended leases.", "namespace"),
		moves:          f.Counters("moves_total", "Ended moves of state between owners, by outcome.", "namespace", "outcome"),
		moveDuration:   f.Histograms("move_duration_seconds", "Duration of moves of state that succeeded.", "namespace"),
		policy:         f.Histograms("policy_duration_seconds", "Duration of the policy's computation of an assignment.", "namespace"),
		policyFailures: f.Counters("policy_failures_total", "Failures of the policy; the assignment did not change.", "namespace"),
	}
}

// remove removes a namespace.
func (p *perNamespace) remove(ns leasehold.Namespace) {
	labels := prometheus.Labels{"namespace": string(ns)}
	for _, v := range []*prometheus.CounterVec{p.joins, p.granted, p.renewed, p.commits, p.losses, p.outages, p.moves, p.policyFailures} {
		v.DeletePartialMatch(labels)
	}
	p.moveDuration.DeletePartialMatch(labels)
	p.policy.DeletePartialMatch(labels)
}

// The outcomes of moves.
const (
	moveDone       = "moved"
	moveFailed     = "failed"
	moveTimedOut   = "timed_out"
	moveCancelled  = "cancelled"
	moveTargetGone = "target_gone"
)

// namespaceMetrics are the metrics of one namespace.
type namespaceMetrics struct {
	joins, granted, renewed, commits, policyFailures, outages prometheus.Counter
	losses, moves                                             *prometheus.CounterVec
	moveDuration, policy                                      prometheus.Observer
}

// namespace returns the metrics of a namespace. It creates them at the first call.
func (m *metrics) namespace(ns leasehold.Namespace) *namespaceMetrics {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.namespaces[ns]; s != nil {
		return s
	}
	name := string(ns)
	labels := prometheus.Labels{"namespace": name}
	s := &namespaceMetrics{
		joins: m.vectors.joins.WithLabelValues(name), granted: m.vectors.granted.WithLabelValues(name),
		renewed: m.vectors.renewed.WithLabelValues(name), commits: m.vectors.commits.WithLabelValues(name),
		policyFailures: m.vectors.policyFailures.WithLabelValues(name), outages: m.vectors.outages.WithLabelValues(name),
		losses: m.vectors.losses.MustCurryWith(labels), moves: m.vectors.moves.MustCurryWith(labels),
		moveDuration: m.vectors.moveDuration.WithLabelValues(name), policy: m.vectors.policy.WithLabelValues(name),
	}
	scrape.Begin(s.losses, scrape.Causes()...)
	scrape.Begin(s.moves, moveDone, moveFailed, moveTimedOut, moveCancelled, moveTargetGone)
	m.namespaces[ns] = s
	return s
}

// prune removes namespaces that do not exist.
func (m *metrics) prune(exists map[leasehold.Namespace]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for ns := range m.namespaces {
		if !exists[ns] {
			m.vectors.remove(ns)
			delete(m.namespaces, ns)
			delete(m.sizes, ns)
		}
	}
}

// countAction counts an action of a namespace's machine.
func (m *metrics) countAction(ns leasehold.Namespace, a machine.Action) {
	if m == nil {
		return
	}
	switch a := a.(type) {
	case machine.Send:
		m.countReply(ns, a.Reply)
	case machine.Broadcast:
		m.countChanges(ns, a.Reply.Changes)
	case machine.Note:
		m.countNote(ns, a)
	default:
	}
}

func (m *metrics) countReply(ns leasehold.Namespace, r *protocol.LeaseReply) {
	if r.Refusal != leasehold.Other {
		m.countRefusal(r.Refusal)
	}
	renewed := 0
	for i := range r.Offers {
		if !r.Offers[i].Fresh {
			renewed++
		}
	}
	if renewed > 0 {
		m.namespace(ns).renewed.Add(float64(renewed))
	}
}

func (m *metrics) countChanges(ns leasehold.Namespace, changes []table.Change) {
	if len(changes) == 0 {
		return
	}
	s := m.namespace(ns)
	s.commits.Add(float64(len(changes)))
	for i := range changes {
		if loss, lost := changes[i].Loss(); lost {
			s.losses.WithLabelValues(scrape.Cause(loss.Cause)).Inc()
		} else {
			s.granted.Inc()
		}
	}
}

func (m *metrics) countNote(ns leasehold.Namespace, n machine.Note) {
	outcome := outcomeOf(n.What)
	switch {
	case outcome != "":
		s := m.namespace(ns)
		s.moves.WithLabelValues(outcome).Inc()
		if outcome == moveDone {
			s.moveDuration.Observe(n.Took.Seconds())
		}
	case n.What == machine.NoteJoined:
		m.namespace(ns).joins.Inc()
	case n.What == machine.NoteOutage:
		m.namespace(ns).outages.Inc()
	case n.What == machine.NotePolicyRefused:
		m.namespace(ns).policyFailures.Inc()
	}
}

// outcomeOf returns the outcome of a move; "" for other notes.
func outcomeOf(what machine.Notable) string {
	switch what {
	case machine.NoteMoveDone:
		return moveDone
	case machine.NoteMoveFailed:
		return moveFailed
	case machine.NoteMoveTimeout:
		return moveTimedOut
	case machine.NoteMoveCancelled:
		return moveCancelled
	case machine.NoteTargetGone:
		return moveTargetGone
	default:
		return ""
	}
}

// timedPolicy is a policy whose duration is recorded.
type timedPolicy struct {
	partition.Policy
	observe prometheus.Observer
}

// Assign implements [partition.Policy].
func (p timedPolicy) Assign(in partition.Input) (partition.Assignment, error) {
	begun := time.Now()
	defer func() { p.observe.Observe(time.Since(begun).Seconds()) }()
	return p.Policy.Assign(in)
}

// Loadless reports whether the policy ignores loads.
func (p timedPolicy) Loadless() bool { return !partition.UsesLoads(p.Policy) }

// Partial reports whether the policy may leave keys without an owner.
func (p timedPolicy) Partial() bool {
	partial, ok := p.Policy.(partition.Partial)
	return ok && partial.Partial()
}

// timePolicy returns a policy whose duration is recorded, or the policy itself without metrics.
func (m *metrics) timePolicy(ns leasehold.Namespace, p partition.Policy) partition.Policy {
	if m == nil || p == nil {
		return p
	}
	return timedPolicy{p, m.namespace(ns).policy}
}
