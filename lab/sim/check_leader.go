package sim

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// checkOneLeader is the basis of I1 across failovers: at any true instant at most one manager has the
// authority to act. A check when a manager's authority begins or is extended is enough; otherwise it only
// ends.
func (o *oracle) checkOneLeader(m *managerHost) {
	if !m.node.Leads(m.now()) {
		return // elected so long ago that its authority has expired
	}
	o.Checks[OneLeader]++
	for _, other := range o.managers {
		if other != m && other.alive && !other.asleep && other.node.Leads(other.now()) {
			o.Violated(OneLeader, "%s acts as leader while %s does", m.label, other.label)
		}
	}
}

// NoLimping is progress of the election during faults: a manager that cannot renew its leadership in time
// does not prevent the leadership of another manager that could. There are three checks.
//
// checkNoLimping: In every period longer than B of I6, some manager has authority at some instant. The
// condition is that during this period one manager is well: it runs, is not being shut down, and its store
// requests have no added latency. At most one manager may have slow store requests. The store as a whole and
// the timers must have no fault. Requests from before count as a fault until their timeout: storeWait.
//
// Why B is enough: A leader whose writes take longer than TTL x drift loses its place, because its record
// stands still. A leader whose writes are faster, but which has no authority, resigns after two writes; the
// resignation is a third write. Before that, the manager that is well may itself have resigned when it was
// not well, and stands back. That is 4 TTL x drift. B is more, because a lease is longer than three TTLs. If
// two managers were slow from time to time, they could take over from each other before the third one could.
// Faults of the network do not matter: the election uses only the store.
//
// checkWatched: a leader that has received its own renewal from a watch has authority, until TTL after it
// sent the renewal.
//
// checkStoodBack: a manager that resigned because its writes were slow does not lead again before another
// manager has had a TTL to take over.

// limping is the state of these checks. All instants are true time.
type limping struct {
	authority int64 // when some manager last had authority
	trouble   int64 // until when the store had a fault, or a request from that time may be in flight
	era       int
}

// limpTick is the interval of checkNoLimping. Authority that begins in between is recorded when it begins.
const limpTick = 250 * time.Millisecond

// pollLimping runs checkNoLimping every limpTick.
func (o *oracle) pollLimping() {
	if o.cfg.Diskless {
		return
	}
	o.checkNoLimping()
	o.Later(limpTick, engine.Nowhere, 0, o.pollLimping)
}

func (o *oracle) authorized(m *managerHost) {
	if m.node.Leads(m.now()) {
		o.limping.authority = o.Now
	}
}

func (o *oracle) checkNoLimping() {
	l := &o.limping
	s := o.store
	if s.down || s.slow > 0 || s.unknown > 0 || s.stale || o.nemesis.starving || s.era != l.era {
		l.trouble, l.era = o.Now+int64(storeWait), s.era
	}
	if slow := slices.DeleteFunc(slices.Clone(o.managers), func(m *managerHost) bool { return m.lag.shape == noLag }); len(slow) > 1 {
		l.trouble = max(l.trouble, o.Now+int64(lagPatience))
	}
	for _, m := range o.managers {
		running := m.alive && m.stopped == 0
		if running && m.node.Leads(m.now()) {
			l.authority = o.Now
		}
		switch {
		case !running || m.resigning:
			m.unwell = o.Now
		case m.storeCut:
			m.unwell = max(m.unwell, o.Now+int64(storeWait))
		case m.lag.shape != noLag:
			m.unwell = max(m.unwell, o.Now+int64(lagPatience))
		}
	}
	for _, m := range o.managers {
		o.Checks[NoLimping]++
		since := max(l.authority, l.trouble, m.unwell)
		if time.Duration(o.Now-since) > o.bound() {
			o.Violated(NoLimping, "no manager has had authority for %v, although %s has been well for %v", time.Duration(o.Now-l.authority), m.label, time.Duration(o.Now-m.unwell))
		}
	}
}

// renewal identifies a record that a manager has sent.
type renewal struct {
	term leasehold.Term
	beat uint64
}

// recordSwap records when a manager first sent a record.
func (m *managerHost) recordSwap(s byrecord.Swap) {
	id := renewal{s.New.Term, s.New.Beat}
	if _, again := m.sent[id]; !again {
		m.sent[id] = m.now()
	}
}

// checkWatched checks a manager that has just processed an event of its watch.
func (o *oracle) checkWatched(m *managerHost, r storage.Record) {
	now := m.now()
	sent, ours := m.sent[renewal{r.Term, r.Beat}]
	if !ours || r.Leader != m.id || r.Resigned || m.node.Term() != r.Term || now >= sent.Add(simTTL) {
		return
	}
	o.Checks[NoLimping]++
	if !m.node.Leads(now) {
		o.Violated(NoLimping, "%s does not act as leader, although its watch has returned its record of term %d, beat %d, sent %v ago", m.label, r.Term, r.Beat, now.Sub(sent))
	}
}

// resignations follows the leader record. A manager that resigns without being shut down had slow writes, and
// stands back until there is another leader.
func (o *oracle) resignations(r storage.Record) {
	o.Mix(uint64(r.Term), r.Beat)
	for _, m := range o.managers {
		switch {
		case m.session != r.Session:
			m.limped = 0
		case r.Resigned && !m.resigning:
			m.limped = o.Now
		}
	}
}

func (o *oracle) checkStoodBack(m *managerHost) {
	if m.limped == 0 {
		return
	}
	o.Checks[NoLimping]++
	if d := time.Duration(o.Now - m.limped); d < simTTL {
		o.Violated(NoLimping, "%s leads again %v after it resigned because of slow writes", m.label, d)
	}
}

// resetSent makes the send times of all records unknown after a suspend.
func (m *managerHost) resetSent() {
	for id := range m.sent {
		m.sent[id] = -mono.Never / 2 // long ago
	}
}
