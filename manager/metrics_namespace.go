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

// perNamespace is what is counted for each namespace that this manager leads.
type perNamespace struct {
	joins, granted, renewed, commits, moves, policyFailures, losses, outages *prometheus.CounterVec
	moveDuration, policy                                                     *prometheus.HistogramVec
}

func newPerNamespace(f *scrape.Family) perNamespace {
	return perNamespace{
		joins:          f.Counters("joins_total", "Owners that became members.", "namespace"),
		granted:        f.Counters("grants_total", "Leases granted, with or without their state.", "namespace"),
		renewed:        f.Counters("renewals_total", "Leases renewed.", "namespace"),
		commits:        f.Counters("changes_total", "Changes of the lease table.", "namespace"),
		losses:         f.Counters("losses_total", "Losses of state, by cause: leases that ended and were not moved. Cause \"released\" are recalls, \"expired\" are owners that died or were cut off.", "namespace", "cause"),
		outages:        f.Counters("outages_total", "How often all owners with leases were silent for longer than a lease, and were kept in the table with their leases suspended.", "namespace"),
		moves:          f.Counters("moves_total", "Moves of state between owners that have ended, by how.", "namespace", "outcome"),
		moveDuration:   f.Histograms("move_duration_seconds", "How long moves of state took that succeeded.", "namespace"),
		policy:         f.Histograms("policy_duration_seconds", "How long the policy takes to decide who should have which keys.", "namespace"),
		policyFailures: f.Counters("policy_failures_total", "How often the policy failed, and the assignment stayed as it was.", "namespace"),
	}
}

// forget removes a namespace that has been deleted.
func (p *perNamespace) forget(ns leasehold.Namespace) {
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

// spaceMetrics is that of one namespace, found once.
type spaceMetrics struct {
	joins, granted, renewed, commits, policyFailures, outages prometheus.Counter
	losses, moves                                             *prometheus.CounterVec
	moveDuration, policy                                      prometheus.Observer
}

// space returns what is counted for a namespace, beginning with it if it is new.
func (m *metrics) space(ns leasehold.Namespace) *spaceMetrics {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.spaces[ns]; s != nil {
		return s
	}
	name := string(ns)
	labels := prometheus.Labels{"namespace": name}
	s := &spaceMetrics{
		joins: m.of.joins.WithLabelValues(name), granted: m.of.granted.WithLabelValues(name),
		renewed: m.of.renewed.WithLabelValues(name), commits: m.of.commits.WithLabelValues(name),
		policyFailures: m.of.policyFailures.WithLabelValues(name), outages: m.of.outages.WithLabelValues(name),
		losses: m.of.losses.MustCurryWith(labels), moves: m.of.moves.MustCurryWith(labels),
		moveDuration: m.of.moveDuration.WithLabelValues(name), policy: m.of.policy.WithLabelValues(name),
	}
	scrape.Begin(s.losses, scrape.Causes()...)
	scrape.Begin(s.moves, moveDone, moveFailed, moveTimedOut, moveCancelled, moveTargetGone)
	m.spaces[ns] = s
	return s
}

// prune forgets namespaces that are gone.
func (m *metrics) prune(exists map[leasehold.Namespace]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for ns := range m.spaces {
		if !exists[ns] {
			m.of.forget(ns)
			delete(m.spaces, ns)
			delete(m.sizes, ns)
		}
	}
}

// manage counts what a namespace's machine decides.
func (m *metrics) manage(ns leasehold.Namespace, a machine.Action) {
	if m == nil {
		return
	}
	switch a := a.(type) {
	case machine.Send:
		m.replied(ns, a.Reply)
	case machine.Broadcast:
		m.changed(ns, a.Reply.Changes)
	case machine.Note:
		m.noted(ns, a)
	default:
	}
}

func (m *metrics) replied(ns leasehold.Namespace, r *protocol.LeaseReply) {
	if r.Refusal != leasehold.Other {
		m.refuse(r.Refusal)
	}
	renewed := 0
	for i := range r.Offers {
		if !r.Offers[i].Fresh {
			renewed++
		}
	}
	if renewed > 0 {
		m.space(ns).renewed.Add(float64(renewed))
	}
}

func (m *metrics) changed(ns leasehold.Namespace, changes []table.Change) {
	if len(changes) == 0 {
		return
	}
	s := m.space(ns)
	s.commits.Add(float64(len(changes)))
	for i := range changes {
		if loss, lost := changes[i].Loss(); lost {
			s.losses.WithLabelValues(scrape.Cause(loss.Cause)).Inc()
		} else {
			s.granted.Inc()
		}
	}
}

func (m *metrics) noted(ns leasehold.Namespace, n machine.Note) {
	outcome := outcomeOf(n.What)
	switch {
	case outcome != "":
		s := m.space(ns)
		s.moves.WithLabelValues(outcome).Inc()
		if outcome == moveDone {
			s.moveDuration.Observe(n.Took.Seconds())
		}
	case n.What == machine.NoteJoined:
		m.space(ns).joins.Inc()
	case n.What == machine.NoteOutage:
		m.space(ns).outages.Inc()
	case n.What == machine.NotePolicyRefused:
		m.space(ns).policyFailures.Inc()
	}
}

// outcomeOf says how a move has ended; "" if the note is about something else.
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

// timed is a policy whose time is taken.
type timed struct {
	partition.Policy
	observe prometheus.Observer
}

// Assign is the policy's.
func (p timed) Assign(in partition.Input) (partition.Assignment, error) {
	begun := time.Now()
	defer func() { p.observe.Observe(time.Since(begun).Seconds()) }()
	return p.Policy.Assign(in)
}

// Loadless is the policy's.
func (p timed) Loadless() bool { return !partition.UsesLoads(p.Policy) }

// clocked takes the time of a policy, if anybody wants to know.
func (m *metrics) clocked(ns leasehold.Namespace, p partition.Policy) partition.Policy {
	if m == nil || p == nil {
		return p
	}
	return timed{p, m.space(ns).policy}
}
