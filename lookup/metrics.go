package lookup

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/runtime/scrape"
)

// metrics is what Prometheus is told of the lookups that this process has in one
// namespace. Counters add up what all of them have done, those that are closed
// included; gauges are about those that are open.
//
// Find and At know nothing of it. What is counted is counted where the machine's
// decisions are carried out, and in Do; the rest is read when somebody asks for it. A
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

// gauges are read when they are asked for.
type gauges struct{ open, lsn, ranges, servers, age, stale, contactLost *prometheus.Desc }

// newMetrics registers the metrics of a namespace, unless another lookup has.
func newMetrics(cfg *Config) (*metrics, error) {
	if cfg.Metrics == nil {
		return nil, nil
	}
	m := &metrics{
		Family:  scrape.Family{Prefix: "leasehold_lookup_", Labels: prometheus.Labels{"namespace": string(cfg.Namespace)}},
		lookups: make(map[*Lookup]bool),
	}
	m.updates = m.Counter("updates_total", "New tables, by changes or as a whole.")
	m.changes = m.Counter("changes_total", "Changes of the table that were received.")
	m.snapshots = m.Counter("snapshots_total", "Tables that were received as a whole, because that was less than what had changed.")
	m.resyncs = m.Counter("resyncs_total", "How often changes were missing or did not follow on the table, and were asked for again.")
	m.losses = m.Counters("losses_total", "Losses of state that were reported, by cause.", "cause")
	m.silences = m.Counter("manager_silences_total", "How often the manager that was asked did not answer in time, and others were asked.")
	m.contacts = m.Counter("contact_losses_total", "How often contact was lost: no manager had confirmed the table for longer than stale_after_seconds.")
	m.calls = m.Counter("calls_total", "Calls of Do: requests of this process, each with all of its attempts.")
	m.failures = m.Counters("call_failures_total", "Calls of Do that ended with an error, by its kind; kind \"error\" is the application's own.", "kind")
	m.retries = m.Counters("call_retries_total", "Attempts of Do that were made again, by why the one before did not succeed.", "kind")
	m.gauges.open = m.Gauge("open", "Lookups that this process has in the namespace.")
	m.gauges.lsn = m.Gauge("lsn", "Number of the last change in the table. Of several lookups the least.")
	m.gauges.ranges = m.Gauge("ranges", "Ranges of the table.")
	m.gauges.servers = m.Gauge("servers", "Servers that own keys.")
	m.gauges.age = m.Gauge("age_seconds", "For how long the table has not been known to be complete. Of several lookups the most.")
	m.gauges.stale = m.Gauge("stale_after_seconds", "At which age contact counts as lost. Of several lookups the least.")
	m.gauges.contactLost = m.Gauge("contact_lost", "Lookups whose contact is lost: whether state was lost since is unknown.")
	scrape.Begin(m.losses, scrape.Causes()...)
	for _, of := range []*prometheus.CounterVec{m.failures, m.retries} {
		scrape.Begin(of, scrape.Kind(leasehold.ErrNotOwner), scrape.Kind(leasehold.ErrNoOwner), scrape.Kind(leasehold.ErrSuspended), scrape.Kind(leasehold.ErrUnavailable), scrape.Kind(leasehold.ErrIndeterminate))
	}
	return scrape.Share(cfg.Metrics, m)
}

// Collect is for [prometheus.Collector].
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	m.Family.Collect(to)
	gauge := func(d *prometheus.Desc, v float64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
	}
	var (
		behind     *snapshot
		age, stale time.Duration
		lost       int
	)
	m.mu.Lock()
	open := len(m.lookups)
	for l := range m.lookups {
		if s := l.current.Load(); behind == nil || s.table.LSN() < behind.table.LSN() {
			behind = s
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
	if behind == nil {
		return // there is no table
	}
	gauge(g.lsn, float64(behind.table.LSN()))
	gauge(g.ranges, float64(behind.table.Len()))
	gauge(g.servers, float64(len(behind.addrs)-1))
	gauge(g.age, age.Seconds())
	gauge(g.stale, stale.Seconds())
	gauge(g.contactLost, float64(lost))
}

// open and close say whose gauges count: of those that have a table.
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

// act counts what the machine decides.
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

// retried counts another attempt.
func (m *metrics) retried(why leasehold.Kind) {
	if m != nil {
		m.retries.WithLabelValues(scrape.Kind(why)).Inc()
	}
}
