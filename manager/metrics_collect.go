package manager

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/scrape"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
)

// gauges are computed at each scrape.
type gauges struct {
	leader, known, ready, term, streams, limits, queue *prometheus.Desc
	// By namespace; except lookups, on the leader only.
	sharding, assignments, loadReports, lookups, owners, draining, suspended, ranges, unowned, lsn, bytes, moves, lease *prometheus.Desc
}

func newGauges(f *scrape.Family) gauges {
	return gauges{
		leader:      f.Gauge("leader", "1 if this manager leads, 0 if not."),
		known:       f.Gauge("leader_known", "1 if this manager has a live leader, itself or another, 0 if not."),
		ready:       f.Gauge("ready", "1 if this manager can serve, like /readyz, 0 if not."),
		term:        f.Gauge("term", "The newest term that this manager has seen."),
		streams:     f.Gauge("streams", "Open streams: of owners, of lookups and standbys, of auto-sharding clients, and of watchers.", "client"),
		limits:      f.Gauge("limit_used_ratio", "Used part of a limited resource, 0 to 1: connections, and in the manager process open files and bytes of its store.", "resource"),
		queue:       f.Gauge("queue_length", "Queued events of the machine."),
		lookups:     f.Gauge("lookups", "Lookups connected to this manager, and standbys that follow it.", "namespace"),
		sharding:    f.Gauge("autosharding_clients", "Auto-sharding clients of gRPC connected to this manager.", "namespace"),
		assignments: f.Total("autosharding_assignments_total", "Assignments for auto-sharding clients by outcome: sent, accepted or rejected by the client.", "namespace", "outcome"),
		loadReports: f.Total("autosharding_load_reports_total", "Load reports of auto-sharding clients.", "namespace"),
		owners:      f.Gauge("owners", "Owners by state: member; greeted, not yet a member; waiting, another process has its name; silent, no request since the leader took over.", "namespace", "state"),
		suspended:   f.Gauge("owners_suspended", "Owners with suspended leases: silent for longer than a lease while no other could take their ranges, or waiting for the leader to resume them.", "namespace"),
		draining:    f.Gauge("owners_leaving", "Owners whose keys are being moved away, because they leave or are drained by an operator.", "namespace"),
		ranges:      f.Gauge("ranges", "Ranges of the lease table.", "namespace"),
		unowned:     f.Gauge("unowned_ratio", "Share of the key space without an owner, 0 to 1.", "namespace"),
		lsn:         f.Gauge("lsn", "LSN of the last change of the lease table.", "namespace"),
		bytes:       f.Gauge("table_bytes", "Size of the lease table as it is sent to lookups.", "namespace"),
		moves:       f.Gauge("moves", "Moves of state between owners: under way, and queued.", "namespace", "state"),
		lease:       f.Gauge("lease_wait_seconds", "Longest unavailability of the keys of an owner that fails: lease x drift.", "namespace"),
	}
}

// collectTimeout bounds the wait for the machine, after which a scrape omits the machine's gauges.
const collectTimeout = 2 * time.Second

// Collect implements [prometheus.Collector].
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	g, at := &m.gauges, m.manager
	leader, known, ready, term := at.leadership.gauges()
	gauge(g.leader, gaugeBool(leader))
	gauge(g.known, gaugeBool(known))
	gauge(g.ready, gaugeBool(ready))
	gauge(g.term, float64(term))
	gauge(g.streams, float64(at.owners.Count()), "owner")
	gauge(g.streams, float64(at.lookups.Count()), "lookup")
	gauge(g.streams, float64(at.events.count()), "watch")
	gauge(g.streams, float64(at.sharding.Count()), "autosharding")
	for _, u := range at.usages() {
		gauge(g.limits, float64(u.Used)/float64(max(1, u.Most)), scrape.Label(u.What))
	}
	gauge(g.queue, float64(at.driver.Waiting()))
	for ns, n := range at.lookups.CountByNamespace() {
		gauge(g.lookups, float64(n), string(ns))
	}
	m.collectSharding(to)
	for _, s := range m.survey() {
		s.report(g, gauge)
		gauge(g.bytes, float64(m.size(&s)), string(s.name))
	}
	m.Family.Collect(to) // after the survey, which removes namespaces
}

// collectSharding reports the auto-sharding clients.
func (m *metrics) collectSharding(to chan<- prometheus.Metric) {
	for ns, s := range m.manager.sharding.Stats() {
		report := func(kind prometheus.ValueType, d *prometheus.Desc, v float64, labels ...string) {
			to <- prometheus.MustNewConstMetric(d, kind, v, append([]string{string(ns)}, labels...)...)
		}
		g := &m.gauges
		report(prometheus.GaugeValue, g.sharding, float64(s.Clients))
		report(prometheus.CounterValue, g.assignments, float64(s.Sent), "sent")
		report(prometheus.CounterValue, g.assignments, float64(s.Accepted), "accepted")
		report(prometheus.CounterValue, g.assignments, float64(s.Rejected), "rejected")
		report(prometheus.CounterValue, g.loadReports, float64(s.Reports))
	}
}

func gaugeBool(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// A survey is a snapshot of a namespace of this leader.
type survey struct {
	name           leasehold.Namespace
	hold           time.Duration
	table          *table.Table // immutable
	owners         [machine.Silent + 1]int
	leaving        int
	suspended      int
	moves, waiting int
}

// survey returns a snapshot of each namespace. Tables are read later, so that the machine does not
// wait.
func (m *metrics) survey() []survey {
	ctx, cancel := context.WithTimeout(m.manager.ctx, collectTimeout)
	defer cancel()
	var out []survey
	var exists map[leasehold.Namespace]bool
	err := m.manager.driver.Do(ctx, func(now mono.Instant) {
		catalog := m.manager.node.Catalog()
		if catalog == nil || !m.manager.node.Leads(now) {
			return
		}
		exists = make(map[leasehold.Namespace]bool)
		for _, n := range catalog.Namespaces {
			if n.Deleted {
				continue
			}
			exists[n.Name] = true
			if led := m.manager.node.Manager(n.Name); led != nil {
				timing := protocol.Timing{Lease: n.Lease, Renew: n.Renew, Drift: n.Drift}
				out = append(out, surveyOf(now, n.Name, timing.Hold(), led))
			}
		}
	})
	if err != nil {
		return nil // the function may still be running
	}
	if exists != nil {
		m.prune(exists)
	}
	for _, s := range out {
		m.namespace(s.name) // creates its counters
	}
	return out
}

func surveyOf(now mono.Instant, ns leasehold.Namespace, hold time.Duration, led *machine.Machine) survey {
	sizes := led.Sizes()
	s := survey{name: ns, hold: hold, table: led.Frozen(), moves: sizes.Moves, waiting: sizes.Backlog}
	for _, o := range led.Owners(now) {
		s.owners[o.Standing]++
		if o.Draining || o.Parting {
			s.leaving++
		}
		if o.Suspended {
			s.suspended++
		}
	}
	return s
}

func (s *survey) report(g *gauges, gauge func(*prometheus.Desc, float64, ...string)) {
	name := string(s.name)
	for standing, kind := range map[machine.Standing]string{
		machine.Member: "member", machine.Greeted: "greeted", machine.Waiting: "waiting", machine.Silent: "silent",
	} {
		gauge(g.owners, float64(s.owners[standing]), name, kind)
	}
	gauge(g.draining, float64(s.leaving), name)
	gauge(g.suspended, float64(s.suspended), name)
	gauge(g.ranges, float64(s.table.Len()), name)
	gauge(g.lsn, float64(s.table.LSN()), name)
	gauge(g.moves, float64(s.moves), name, "under_way")
	gauge(g.moves, float64(s.waiting), name, "waiting")
	gauge(g.lease, s.hold.Seconds(), name)
	unowned := 0.0
	for r, e := range s.table.All() {
		if e.Vacant() {
			unowned += shareOf(r)
		}
	}
	gauge(g.unowned, unowned, name)
}

// tableSize is the encoded size of a table at an LSN.
type tableSize struct {
	lsn   leasehold.LSN
	bytes int
}

// size returns the encoded size of a table. It encodes the table if it has changed, which takes
// tens of milliseconds for a large one, outside the machine's goroutine.
func (m *metrics) size(s *survey) int {
	m.mu.Lock()
	known := m.sizes[s.name]
	m.mu.Unlock()
	if known.bytes > 0 && known.lsn == s.table.LSN() {
		return known.bytes
	}
	frame, err := wire.EncodeUpdate(&protocol.LookupReply{Namespace: s.name, LSN: s.table.LSN(), Snapshot: s.table})
	if err != nil {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sizes[s.name] = tableSize{s.table.LSN(), frame.Len()}
	return frame.Len()
}
