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

// gauges are how things are when somebody asks.
type gauges struct {
	leader, known, ready, term, streams, limits, queue *prometheus.Desc
	// Of the namespaces that this manager leads, but for lookups.
	lookups, owners, draining, suspended, ranges, unowned, lsn, bytes, moves, lease *prometheus.Desc
}

func newGauges(f *scrape.Family) gauges {
	return gauges{
		leader:    f.Gauge("leader", "1 if this manager leads, 0 if not."),
		known:     f.Gauge("leader_known", "1 if this manager knows a leader that lives, itself or another, 0 if not."),
		ready:     f.Gauge("ready", "1 if this manager can serve, as /readyz says, 0 if not."),
		term:      f.Gauge("term", "The newest term that this manager knows of."),
		streams:   f.Gauge("streams", "Streams that are open: of owners, of lookups and standbys, and of those who watch.", "kind"),
		limits:    f.Gauge("limit_used_ratio", "How much is in use of what this manager has only so much of, 0 to 1: connections, and of a manager that is a process of its own open files and bytes of its store.", "kind"),
		queue:     f.Gauge("queue_length", "Events that wait for the machine."),
		lookups:   f.Gauge("lookups", "Lookups connected to this manager, and standbys that follow it.", "namespace"),
		owners:    f.Gauge("owners", "Owners as the leader sees them: member; greeted, new; waiting, for its name; silent, not heard since the leader took over.", "namespace", "kind"),
		suspended: f.Gauge("owners_suspended", "Owners whose leases are suspended: they were not heard for longer than a lease and no other could have their ranges, or they wait for the leader to resume them.", "namespace"),
		draining:  f.Gauge("owners_leaving", "Owners whose keys are being moved away, because they want to leave or an operator wants them drained.", "namespace"),
		ranges:    f.Gauge("ranges", "Ranges of the lease table.", "namespace"),
		unowned:   f.Gauge("unowned_ratio", "Share of the key space that nobody owns, 0 to 1.", "namespace"),
		lsn:       f.Gauge("lsn", "Number of the last change of the lease table.", "namespace"),
		bytes:     f.Gauge("table_bytes", "Size of the lease table as it is sent to lookups.", "namespace"),
		moves:     f.Gauge("moves", "Moves of state between owners: under way, and waiting for their turn.", "namespace", "kind"),
		lease:     f.Gauge("lease_wait_seconds", "How long the keys of an owner that dies wait at most: lease x drift.", "namespace"),
	}
}

// collectTimeout is how long the machine may take to say how it is. If that is not
// enough, what only it knows is missing from the answer.
const collectTimeout = 2 * time.Second

// Collect is for [prometheus.Collector].
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
	for _, u := range at.usages() {
		gauge(g.limits, float64(u.Used)/float64(max(1, u.Most)), scrape.Label(u.What))
	}
	gauge(g.queue, float64(at.driver.Waiting()))
	for ns, n := range at.lookups.CountByNamespace() {
		gauge(g.lookups, float64(n), string(ns))
	}
	for _, s := range m.survey() {
		s.report(g, gauge)
		gauge(g.bytes, float64(m.size(&s)), string(s.name))
	}
	m.Family.Collect(to) // after the survey, which forgets namespaces
}

func gaugeBool(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// A survey is how a namespace is that we lead.
type survey struct {
	name           leasehold.Namespace
	hold           time.Duration
	table          *table.Table // immutable
	owners         [machine.Silent + 1]int
	leaving        int
	suspended      int
	moves, waiting int
}

// survey asks the machine about all namespaces that it leads. It does not look at
// tables while the machine waits.
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
		return nil // it may be at it still
	}
	if exists != nil {
		m.prune(exists)
	}
	for _, s := range out {
		m.namespace(s.name) // its counters are there from the beginning
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
			unowned += (float64(r.Last()-r.Start) + 1) / (1 << 64)
		}
	}
	gauge(g.unowned, unowned, name)
}

// tableSize is how large a table was when it was last encoded.
type tableSize struct {
	lsn   leasehold.LSN
	bytes int
}

// size returns how large a table is, and encodes it only if it has changed. That takes
// tens of milliseconds if it is large, in which nobody waits for us.
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
