package manager

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/runtime/connlimit"
	"github.com/leasehold-dev/leasehold/internal/runtime/scrape"
)

// metrics is what Prometheus is told of a manager. What happens is counted where the
// machine's decisions are carried out; how things are is asked of the machine when
// somebody wants to know: see metrics_collect.go. A nil metrics counts nothing.
//
// Labels are namespaces, of which operators make as many as they like, and what there
// are a few of. Owners and keys are in the log and the events.
type metrics struct {
	manager *Manager
	scrape.Family
	gauges gauges

	changes prometheus.Counter
	lapses  prometheus.Counter
	refused *prometheus.CounterVec
	dropped *prometheus.CounterVec
	steps   prometheus.Histogram
	late    prometheus.Histogram
	store   *prometheus.HistogramVec
	errors  *prometheus.CounterVec
	vectors perNamespace

	mu         sync.Mutex
	namespaces map[leasehold.Namespace]*namespaceMetrics
	sizes      map[leasehold.Namespace]tableSize
}

// quick are the buckets for what should take microseconds.
func quick() []float64 {
	return []float64{1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5}
}

// newMetrics returns the metrics of a manager. They are its own: two managers whose
// numbers are added up have no leader, or two.
func newMetrics(m *Manager) *metrics {
	if m.cfg.Metrics == nil {
		return nil
	}
	out := &metrics{
		Family:  scrape.Family{Prefix: "leasehold_manager_"},
		manager: m, namespaces: make(map[leasehold.Namespace]*namespaceMetrics), sizes: make(map[leasehold.Namespace]tableSize),
	}
	out.gauges, out.vectors = newGauges(&out.Family), newPerNamespace(&out.Family)
	out.changes = out.Counter("leader_changes_total", "How often this manager learned of a leader in a new term.")
	out.lapses = out.Counter("leadership_lapses_total", "How often this manager could not renew its leadership in time.")
	out.refused = out.Counters("refused_total", "Messages of owners and lookups that were refused or sent elsewhere, by kind.", "kind")
	out.dropped = out.Counters("connections_dropped_total", "Connections that were dropped because they did not introduce themselves in time, or were too many, by kind.", "kind")
	out.steps = out.Histogram("step_duration_seconds", "How long the machine takes for one event, until all that it decided has been passed on.", quick())
	out.late = out.Histogram("wake_delay_seconds", "How much later than it wanted to the machine was woken.", quick())
	out.store = out.Histograms("store_request_duration_seconds", "How long requests to the store take, by kind.", "kind")
	out.errors = out.Counters("store_errors_total", "Requests to the store that failed or had no answer in time, by kind.", "kind")
	scrape.Begin(out.refused, scrape.Kind(leasehold.ErrNotLeader), scrape.Kind(leasehold.ErrLimit), scrape.Kind(leasehold.ErrNotFound))
	for _, why := range connlimit.Reasons() {
		scrape.Begin(out.dropped, string(why))
	}
	scrape.Begin(out.errors, storeKinds...)
	return out
}

// register lets others ask. Everything that is asked must be there.
func (m *metrics) register() error {
	if m == nil {
		return nil
	}
	if err := m.manager.cfg.Metrics.Register(m); err != nil {
		return scrape.Taken(err)
	}
	return nil
}

// close takes the metrics out of the registry, for the next manager.
func (m *metrics) close() {
	if m != nil {
		m.manager.cfg.Metrics.Unregister(m)
	}
}

func (m *metrics) countRefusal(kind leasehold.Kind) {
	if m != nil {
		m.refused.WithLabelValues(scrape.Kind(kind)).Inc()
	}
}

// drop counts a connection that the gate has dropped.
func (m *metrics) countDropped(why connlimit.Reason) {
	if m != nil {
		m.dropped.WithLabelValues(string(why)).Inc()
	}
}

// led counts that there is a leader in a new term.
func (m *metrics) countLeader() {
	if m != nil {
		m.changes.Inc()
	}
}

func (m *metrics) countElection(n byrecord.Note) {
	if m != nil && n.What == byrecord.NoteLapsed {
		m.lapses.Inc()
	}
}

// A measured stepper is the manager's, and takes the time of its steps. It is touched
// only within them.
type measured struct {
	stepper
	metrics *metrics
	begun   mono.Instant
	wake    mono.Instant // when it last wanted to be woken
}

// A stepper is a machine as the driver sees it.
type stepper interface {
	Step(now mono.Instant, event managerproc.Event) ([]managerproc.Action, mono.Instant)
	Advance(now mono.Instant) ([]managerproc.Action, mono.Instant)
}

func (m *measured) begin(now mono.Instant) {
	m.begun = now
	if m.wake > 0 && now >= m.wake {
		m.metrics.late.Observe(now.Sub(m.wake).Seconds())
	}
}

// Step is the machine's.
func (m *measured) Step(now mono.Instant, event managerproc.Event) (actions []managerproc.Action, wake mono.Instant) {
	m.begin(now)
	actions, m.wake = m.stepper.Step(now, event)
	return actions, m.wake
}

// Advance is the machine's.
func (m *measured) Advance(now mono.Instant) (actions []managerproc.Action, wake mono.Instant) {
	m.begin(now)
	actions, m.wake = m.stepper.Advance(now)
	return actions, m.wake
}

// stepped takes the time when everything is carried out that a step has decided.
func (m *metrics) observeStep(begun mono.Instant) {
	if m != nil {
		m.steps.Observe(max(0, m.manager.clock.Now().Sub(begun).Seconds()))
	}
}
