package owner

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/scrape"
)

// metrics are the Prometheus metrics of this process's owners in one
// namespace. Counters are sums over all owners, including closed ones;
// gauges cover the open ones.
//
// Check and Held do not count. Counters increase where the machine's
// actions are executed; gauges are computed on each scrape. A nil
// metrics counts nothing.
type metrics struct {
	scrape.Family
	joins    *prometheus.CounterVec
	sent     prometheus.Counter
	renewals prometheus.Counter
	rtt      prometheus.Histogram
	granted  prometheus.Counter
	revoked  *prometheus.CounterVec
	paused   prometheus.Counter
	resumed  prometheus.Counter
	dropped  *prometheus.CounterVec
	silences prometheus.Counter
	clock    *prometheus.CounterVec
	work     prometheus.Counter

	moves        *prometheus.CounterVec
	moveDuration *prometheus.HistogramVec
	unserved     prometheus.Histogram
	movedRecords prometheus.Counter
	movedBytes   prometheus.Counter

	gauges gauges

	mu     sync.Mutex
	owners map[*Owner]bool
}

// The outcomes of a move.
const (
	moved     = "moved"
	failed    = "failed"
	cancelled = "cancelled"
)

// newMetrics registers the metrics of a namespace, or returns those that another owner has
// registered.
func newMetrics(cfg *Config) (*metrics, error) {
	if cfg.Metrics == nil {
		return nil, nil
	}
	m := &metrics{
		Family: scrape.Family{Prefix: "leasehold_owner_", Labels: prometheus.Labels{"namespace": string(cfg.Namespace)}},
		owners: make(map[*Owner]bool),
	}
	m.joins = m.Counters("joins_total", "Calls of Join, by outcome.", "outcome")
	m.sent = m.Counter("requests_total", "Requests sent to managers.")
	m.renewals = m.Counter("renewals_total", "Renewals: extensions of the deadline of the leases.")
	m.rtt = m.Histogram("renewal_duration_seconds", "Time from a request to the leader's reply.", scrape.Durations())
	m.granted = m.Counter("grants_total", "Leases granted to this process.")
	m.revoked = m.Counters("revocations_total", "Leases, or parts of leases, that have ended, by cause.", "cause")
	m.paused = m.Counter("suspensions_total", "Leases suspended: no leader replied before their deadline, and their state is kept.")
	m.resumed = m.Counter("resumptions_total", "Suspended leases that a leader has renewed under the same generation.")
	m.dropped = m.Counters("dropped_messages_total", "Messages of managers that were dropped, by reason.", "reason")
	m.silences = m.Counter("leader_silences_total", "Request timeouts: the leader did not reply in time, and the retry went to all managers.")
	m.clock = m.Counters("clock_trouble_total", "Drops of all leases because of this computer's clock: the computer was suspended, or the clock is too slow.", "kind")
	m.work = m.Counter("work_total", "Work on held keys: successful checks, or the cost that the application reports. Estimated from samples, every few seconds.")
	m.moves = m.Counters("moves_total", "Moves of a range's state that have ended, by direction and outcome.", "direction", "outcome")
	m.moveDuration = m.Histograms("move_duration_seconds", "Duration of successful moves.", "direction")
	m.unserved = m.Histogram("move_unserved_seconds", "Time in which no server served a moved range, measured at the source: from the stop until the target has confirmed.", scrape.Durations())
	m.movedRecords = m.Counter("sent_records_total", "Records sent to other owners by moves that have ended.")
	m.movedBytes = m.Counter("sent_bytes_total", "Bytes sent to other owners by moves that have ended.")
	m.gauges.owners = m.Gauge("sessions", "Open owners of this process in the namespace.")
	m.gauges.leases = m.Gauge("leases", "Leases held.")
	m.gauges.suspended = m.Gauge("suspended_leases", "Leases suspended: checks fail on their keys, and their state is kept until a leader replies.")
	m.gauges.share = m.Gauge("key_space_ratio", "Share of the key space held, 0 to 1.")
	m.gauges.validity = m.Gauge("validity_seconds", "Time until the deadline of the leases; 0 without leases. The minimum of several owners.")
	m.gauges.lease = m.Gauge("lease_duration_seconds", "Duration of leases according to the leader; 0 before its first reply.")
	m.gauges.term = m.Gauge("leader_term", "Term of the last leader that has replied.")
	m.gauges.underWay = m.Gauge("moves_under_way", "Moves of a range's state in progress.", "direction")
	scrape.Begin(m.joins, "accepted", "refused", "gave_up")
	scrape.Begin(m.revoked, scrape.Causes()...)
	scrape.Begin(m.clock, "suspended", "slow")
	for _, what := range droppedNotes() {
		scrape.Begin(m.dropped, scrape.Label(what.String()))
	}
	for _, direction := range []string{"in", "out"} {
		m.moveDuration.WithLabelValues(direction)
		for _, outcome := range []string{moved, failed, cancelled} {
			m.moves.WithLabelValues(direction, outcome)
		}
	}
	return scrape.Share(cfg.Metrics, m)
}

// open adds an owner to the gauges; close removes it.
func (m *metrics) open(o *Owner) {
	if m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.owners[o] = true
	}
}

func (m *metrics) close(o *Owner) {
	if m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.owners, o)
	}
}

func (m *metrics) joined(err error) {
	switch {
	case m == nil:
	case err == nil:
		m.joins.WithLabelValues("accepted").Inc()
	case leasehold.KindOf(err) == leasehold.ErrUnavailable || leasehold.KindOf(err) == leasehold.ErrNameTaken:
		m.joins.WithLabelValues("gave_up").Inc()
	default:
		m.joins.WithLabelValues("refused").Inc()
	}
}

// note counts the notes that have a metric.
func (m *metrics) note(what machine.Notable) {
	if m == nil {
		return
	}
	switch what {
	case machine.NoteSlept:
		m.clock.WithLabelValues("suspended").Inc()
	case machine.NoteClockSlow:
		m.clock.WithLabelValues("slow").Inc()
	case machine.NoteLeaderSilent:
		m.silences.Inc()
	default:
		if slices.Contains(droppedNotes(), what) {
			m.dropped.WithLabelValues(scrape.Label(what.String())).Inc()
		}
	}
}

// droppedNotes returns the notes of dropped messages.
func droppedNotes() []machine.Notable {
	return []machine.Notable{
		machine.NoteBadMessage, machine.NoteForeign, machine.NoteStaleTerm, machine.NoteDuplicate, machine.NoteRace, machine.NoteLate,
	}
}

func (m *metrics) addWork(work float64) {
	if m != nil {
		m.work.Add(work)
	}
}

func (m *metrics) renewed() {
	if m != nil {
		m.renewals.Inc()
	}
}

func (m *metrics) grant(leases int) {
	if m != nil {
		m.granted.Add(float64(leases))
	}
}

func (m *metrics) suspend(leases int) {
	if m != nil {
		m.paused.Add(float64(leases))
	}
}

func (m *metrics) resume(leases int) {
	if m != nil {
		m.resumed.Add(float64(leases))
	}
}

func (m *metrics) revoke(leases int, cause leasehold.Cause) {
	if m != nil {
		m.revoked.WithLabelValues(scrape.Cause(cause)).Add(float64(leases))
	}
}

// replyStats are the newest request without a reply, only for the driver's goroutine,
// and the lease duration and term of the last reply, for scrapes.
type replyStats struct {
	seq protocol.Seq // 0 if the newest request has a reply
	at  mono.Instant

	lease atomic.Int64 // a time.Duration
	term  atomic.Uint64
}

func (m *metrics) send(s *replyStats, now mono.Instant, r *protocol.LeaseRequest) {
	if m == nil {
		return
	}
	m.sent.Inc()
	s.seq, s.at = r.Seq, now
}

// reply measures the time of the first reply to the newest request.
func (m *metrics) reply(s *replyStats, now mono.Instant, r *protocol.LeaseReply) {
	if m == nil {
		return
	}
	if r.Timing.Lease > 0 && uint64(r.Term) >= s.term.Load() { // a refusal has no timing
		s.lease.Store(int64(r.Timing.Lease))
		s.term.Store(uint64(r.Term))
	}
	if s.seq == 0 || r.Echo != s.seq {
		return
	}
	m.rtt.Observe(now.Sub(s.at).Seconds())
	s.seq = 0
}
