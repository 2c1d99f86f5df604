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

// metrics are a manager's Prometheus metrics. Counters are updated where actions are executed;
// gauges are read from the machine during a scrape: see metrics_collect.go. A nil metrics counts
// nothing.
//
// Labels are namespaces and small enumerations. Owners and keys would have too many values: they
// are in the log and the events.
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

// quick returns buckets for durations that are usually microseconds.
func quick() []float64 {
	return []float64{1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5}
}

// newMetrics returns the metrics of a manager, nil without Config.Metrics. Each manager has its
// own: gauges of two managers cannot be added.
func newMetrics(m *Manager) *metrics {
	if m.cfg.Metrics == nil {
		return nil
	}
	out := &metrics{
		Family:  scrape.Family{Prefix: "leasehold_manager_"},
		manager: m, namespaces: make(map[leasehold.Namespace]*namespaceMetrics), sizes: make(map[leasehold.Namespace]tableSize),
	}
	out.gauges, out.vectors = newGauges(&out.Family), newPerNamespace(&out.Family)
	out.changes = out.Counter("leader_changes_total", "Leaders in a new term that this manager observed.")
	out.lapses = out.Counter("leadership_lapses_total", "Leaderships of this manager that expired before they were renewed.")
	out.refused = out.Counters("refused_total", "Requests of owners and lookups that were refused or redirected, by kind of the error.", "kind")
	out.dropped = out.Counters("connections_dropped_total", "Connections that were closed because they did not authenticate in time or exceeded a limit, by reason.", "reason")
	out.steps = out.Histogram("step_duration_seconds", "Duration of one step of the machine, including the execution of its actions.", quick())
	out.late = out.Histogram("wake_delay_seconds", "Delay of the machine's timer.", quick())
	out.store = out.Histograms("store_request_duration_seconds", "Duration of requests to the store, by request.", "request")
	out.errors = out.Counters("store_errors_total", "Requests to the store that failed or timed out, by request.", "request")
	scrape.Begin(out.refused, scrape.Kind(leasehold.ErrNotLeader), scrape.Kind(leasehold.ErrLimit), scrape.Kind(leasehold.ErrNotFound))
	for _, why := range connlimit.Reasons() {
		scrape.Begin(out.dropped, string(why))
	}
	scrape.Begin(out.errors, storeKinds...)
	return out
}

// register registers the metrics. All parts of the manager that a scrape reads must exist.
func (m *metrics) register() error {
	if m == nil {
		return nil
	}
	if err := m.manager.cfg.Metrics.Register(m); err != nil {
		return scrape.Taken(err)
	}
	return nil
}

// close unregisters the metrics.
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

// countDropped counts a connection that was closed because of a limit.
func (m *metrics) countDropped(why connlimit.Reason) {
	if m != nil {
		m.dropped.WithLabelValues(string(why)).Inc()
	}
}

// countLeader counts a leader in a new term.
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

// measured is the manager's machine with the time of its steps. It is touched only within steps.
type measured struct {
	stepper
	metrics *metrics
	begun   mono.Instant // of the current step
	wake    mono.Instant // requested by the last step
}

// A stepper is a machine for the driver.
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

// Step implements [stepper].
func (m *measured) Step(now mono.Instant, event managerproc.Event) (actions []managerproc.Action, wake mono.Instant) {
	m.begin(now)
	actions, m.wake = m.stepper.Step(now, event)
	return actions, m.wake
}

// Advance implements [stepper].
func (m *measured) Advance(now mono.Instant) (actions []managerproc.Action, wake mono.Instant) {
	m.begin(now)
	actions, m.wake = m.stepper.Advance(now)
	return actions, m.wake
}

// observeStep records the duration of a step, after its actions.
func (m *metrics) observeStep(begun mono.Instant) {
	if m != nil {
		m.steps.Observe(max(0, m.manager.clock.Now().Sub(begun).Seconds()))
	}
}
