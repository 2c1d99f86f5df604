package lookup

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/runtime/scrape"
)

// metrics are the Prometheus metrics of this process's lookups in one
// namespace. Counters are sums over all lookups, including closed ones;
// gauges cover the open ones.
//
// Find and At do not count. Counters increase where the machine's
// actions are executed, and in Do; gauges are computed on each scrape. A
// nil metrics counts nothing.
type metrics struct {
	scrape.Family
	updates   prometheus.Counter
	changes   prometheus.Counter
	snapshots prometheus.Counter
	resyncs   prometheus.Counter
	losses    *prometheus.CounterVec
	silences  prometheus.Counter
	contacts  prometheus.Counter
	calls     prometheus.Counter
	failures  *prometheus.CounterVec
	retries   *prometheus.CounterVec

	gauges gauges

	mu      sync.Mutex
	lookups map[*Lookup]bool
}

// gauges are the descriptions of the values that Collect computes.
type gauges struct{ open, lsn, ranges, servers, age, stale, contactLost *prometheus.Desc }

// newMetrics registers the metrics of a namespace, or returns those that another lookup has
// registered.
func newMetrics(cfg *Config) (*metrics, error) {
	if cfg.Metrics == nil {
		return nil, nil
	}
	m := &metrics{
		Family:  scrape.Family{Prefix: "leasehold_lookup_", Labels: prometheus.Labels{"namespace": string(cfg.Namespace)}},
		lookups: make(map[*Lookup]bool),
	}
	m.updates = m.Counter("updates_total", "Updates of the table, by changes or by snapshots.")
	m.changes = m.Counter("changes_total", "Table changes applied.")
	m.snapshots = m.Counter("snapshots_total", "Snapshots received instead of changes, because they were smaller.")
	m.resyncs = m.Counter("resyncs_total", "Requests for changes or snapshots because changes were missing or did not apply to the table.")
	m.losses = m.Counters("losses_total", "Losses of state that were reported, by cause.", "cause")
	m.silences = m.Counter("manager_silences_total", "Request timeouts: the manager did not reply in time, and the retry went to other managers.")
	m.contacts = m.Counter("contact_losses_total", "Losses of contact: no manager had confirmed the table for longer than stale_after_seconds.")
	m.calls = m.Counter("calls_total", "Calls of Do, each with all of its attempts.")
	m.failures = m.Counters("call_failures_total", "Calls of Do that returned an error, by kind; kind \"error\" is an error of the application.", "kind")
	m.retries = m.Counters("call_retries_total", "Retries of Do, by the kind of the failed attempt.", "kind")
	m.gauges.open = m.Gauge("open", "Open lookups of this process in the namespace.")
	m.gauges.lsn = m.Gauge("lsn", "LSN of the table; the minimum of several lookups.")
	m.gauges.ranges = m.Gauge("ranges", "Ranges of the table.")
	m.gauges.servers = m.Gauge("servers", "Servers that own keys.")
	m.gauges.age = m.Gauge("age_seconds", "Time since the table last contained all committed changes; the maximum of several lookups.")
	m.gauges.stale = m.Gauge("stale_after_seconds", "Age at which contact is lost; the minimum of several lookups.")
	m.gauges.contactLost = m.Gauge("contact_lost", "Lookups without contact: it is unknown whether state was lost since.")
	scrape.Begin(m.losses, scrape.Causes()...)
	for _, of := range []*prometheus.CounterVec{m.failures, m.retries} {
		scrape.Begin(of, scrape.Kind(leasehold.ErrNotOwner), scrape.Kind(leasehold.ErrNoOwner), scrape.Kind(leasehold.ErrSuspended), scrape.Kind(leasehold.ErrUnavailable), scrape.Kind(leasehold.ErrIndeterminate))
	}
	return scrape.Share(cfg.Metrics, m)
}

// Collect implements [prometheus.Collector].
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	m.Family.Collect(to)
	gauge := func(d *prometheus.Desc, v float64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
	}
	var (
		oldest     *snapshot
		age, stale time.Duration
		lost       int
	)
	m.mu.Lock()
	open := len(m.lookups)
	for l := range m.lookups {
		if s := l.current.Load(); oldest == nil || s.table.LSN() < oldest.table.LSN() {
			oldest = s
		}
		age = max(age, l.Age())
		if !l.Ready() {
			lost++
		}
		if stale == 0 || l.cfg.Stale < stale {
			stale = l.cfg.Stale
		}
	}
	m.mu.Unlock()
	g := &m.gauges
	gauge(g.open, float64(open))
	if oldest == nil {
		return // no open lookup
	}
	gauge(g.lsn, float64(oldest.table.LSN()))
	gauge(g.ranges, float64(oldest.table.Len()))
	gauge(g.servers, float64(len(oldest.addrs)-1))
	gauge(g.age, age.Seconds())
	gauge(g.stale, stale.Seconds())
	gauge(g.contactLost, float64(lost))
}

// open adds a lookup, which has a table, to the gauges; close removes it.
func (m *metrics) open(l *Lookup) {
	if m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.lookups[l] = true
	}
}

func (m *metrics) close(l *Lookup) {
	if m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.lookups, l)
	}
}

// act counts an action of the machine.
func (m *metrics) act(a machine.Action) {
	if m == nil {
		return
	}
	switch a := a.(type) {
	case machine.Publish:
		m.updates.Inc()
		m.changes.Add(float64(len(a.Changes)))
	case machine.Losses:
		for i := range a.Losses {
			m.losses.WithLabelValues(scrape.Cause(a.Losses[i].Cause)).Inc()
		}
	case machine.Contact:
		if a.Lost {
			m.contacts.Inc()
		}
	case machine.Note:
		switch a.What {
		case machine.NoteSnapshot:
			m.snapshots.Inc()
		case machine.NoteGap, machine.NoteMixed:
			m.resyncs.Inc()
		case machine.NoteLeaderSilent:
			m.silences.Inc()
		default:
		}
	default:
	}
}

// called counts a call of Do that has ended.
func (m *metrics) called(err error) {
	if m == nil {
		return
	}
	m.calls.Inc()
	if err != nil {
		m.failures.WithLabelValues(scrape.Kind(kindOf(err))).Inc()
	}
}

// retried counts a retry.
func (m *metrics) retried(why leasehold.Kind) {
	if m != nil {
		m.retries.WithLabelValues(scrape.Kind(why)).Inc()
	}
}
