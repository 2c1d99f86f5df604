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

// metrics is what Prometheus is told of the owners that this process has in one
// namespace. Counters add up what all of them have done, those that are closed
// included; gauges are about those that are open.
//
// Check and Held know nothing of it. What is counted is counted where the machine's
// decisions are carried out, and the rest is read when somebody asks for it. A nil
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

// What may become of a move.
const (
	moved     = "moved"
	failed    = "failed"
	cancelled = "cancelled"
)

// newMetrics registers the metrics of a namespace, unless another owner has.
func newMetrics(cfg *Config) (*metrics, error) {
	if cfg.Metrics == nil {
		return nil, nil
	}
	m := &metrics{
		Family: scrape.Family{Prefix: "leasehold_owner_", Labels: prometheus.Labels{"namespace": string(cfg.Namespace)}},
		owners: make(map[*Owner]bool),
	}
	m.joins = m.Counters("joins_total", "Attempts to join the namespace, by how they ended.", "outcome")
	m.sent = m.Counter("requests_total", "Messages sent to managers.")
	m.renewals = m.Counter("renewals_total", "Renewals: how often the time of the leases was extended.")
	m.rtt = m.Histogram("renewal_duration_seconds", "How long the leader takes to answer a message.", scrape.Durations())
	m.granted = m.Counter("grants_total", "Leases granted to this process.")
	m.revoked = m.Counters("revocations_total", "Leases, or parts of leases, that have ended, by cause.", "cause")
	m.paused = m.Counter("suspensions_total", "Leases that were suspended: no leader answered before their deadline, and their state is kept.")
	m.resumed = m.Counter("resumptions_total", "Suspended leases that a leader has renewed under the same generation.")
	m.dropped = m.Counters("dropped_messages_total", "Messages of managers that were dropped, by reason.", "reason")
	m.silences = m.Counter("leader_silences_total", "How often the leader did not answer in time, and all managers were asked.")
	m.clock = m.Counters("clock_trouble_total", "How often leases were dropped because of this computer's clock: it was suspended, or is too slow.", "kind")
	m.work = m.Counter("work_total", "Work on keys that are held: checks that succeeded, or the cost that the application reports. Estimated from samples, every few seconds.")
	m.moves = m.Counters("moves_total", "Moves of a range's state that have ended.", "direction", "outcome")
	m.moveDuration = m.Histograms("move_duration_seconds", "How long moves took that succeeded.", "direction")
	m.unserved = m.Histogram("move_unserved_seconds", "How long ranges that have moved away were served by nobody, as far as this side knows: from the stop until the target had everything.", scrape.Durations())
	m.movedRecords = m.Counter("sent_records_total", "Records sent to other owners by moves that have ended.")
	m.movedBytes = m.Counter("sent_bytes_total", "Bytes sent to other owners by moves that have ended.")
	m.gauges.owners = m.Gauge("sessions", "Owners that this process has in the namespace.")
	m.gauges.leases = m.Gauge("leases", "Leases held.")
	m.gauges.suspended = m.Gauge("suspended_leases", "Leases suspended: no check succeeds on their keys, and their state is kept until a leader answers.")
	m.gauges.share = m.Gauge("key_space_ratio", "Share of the key space held, 0 to 1.")
	m.gauges.validity = m.Gauge("validity_seconds", "How long the leases last if they are not renewed; 0 if nothing is held. Of several owners the least.")
	m.gauges.lease = m.Gauge("lease_duration_seconds", "How long leases last that are renewed now, as the leader says; 0 before it has.")
	m.gauges.term = m.Gauge("leader_term", "Term of the leader last heard.")
	m.gauges.underWay = m.Gauge("moves_under_way", "Moves of a range's state under way.", "direction")
	scrape.Begin(m.joins, "accepted", "refused", "gave_up")
	scrape.Begin(m.revoked, scrape.Causes()...)
	scrape.Begin(m.clock, "suspended", "slow")
	for _, what := range droppings() {
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

// open and close say whose gauges count.
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

// note counts what the machine notes, where that says something to an operator.
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
		if slices.Contains(droppings(), what) {
			m.dropped.WithLabelValues(scrape.Label(what.String())).Inc()
		}
	}
}

// droppings are notes that say that a message was dropped.
func droppings() []machine.Notable {
	return []machine.Notable{
		machine.NoteBadMessage, machine.NoteForeign, machine.NoteStaleTerm, machine.NoteDuplicate, machine.NoteRace, machine.NoteLate,
	}
}

func (m *metrics) worked(much float64) {
	if m != nil {
		m.work.Add(much)
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

func (m *metrics) revoke(leases int, why leasehold.Cause) {
	if m != nil {
		m.revoked.WithLabelValues(scrape.Cause(why)).Add(float64(leases))
	}
}

// heard is which of our messages has no answer, and belongs to the driver's goroutine;
// and what the leader last said, for those who ask at any time.
type heard struct {
	seq protocol.Seq // 0 if there is none
	at  mono.Instant

	lease atomic.Int64 // a time.Duration
	term  atomic.Uint64
}

func (m *metrics) send(h *heard, now mono.Instant, r *protocol.LeaseRequest) {
	if m == nil {
		return
	}
	m.sent.Inc()
	h.seq, h.at = r.Seq, now
}

// answer takes the time of the first answer to our newest message.
func (m *metrics) answer(h *heard, now mono.Instant, r *protocol.LeaseReply) {
	if m == nil {
		return
	}
	if r.Timing.Lease > 0 && uint64(r.Term) >= h.term.Load() { // a refusal has no times
		h.lease.Store(int64(r.Timing.Lease))
		h.term.Store(uint64(r.Term))
	}
	if h.seq == 0 || r.Echo != h.seq {
		return
	}
	m.rtt.Observe(now.Sub(h.at).Seconds())
	h.seq = 0
}
