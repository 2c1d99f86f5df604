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

// checkOneLeader is what I1 rests on where leaders change: at any true instant
// at most one manager has the authority to act. It is enough to look when a
// manager's authority begins or is extended; otherwise it only ends.
func (o *oracle) checkOneLeader(m *managerHost) {
	if !m.node.Leads(m.now()) {
		return // it was elected so long ago that it may not act yet
	}
	o.Checks[OneLeader]++
	for _, other := range o.managers {
		if other != m && other.alive && !other.asleep && other.node.Leads(other.now()) {
			o.Violated(OneLeader, "%s acts as leader while %s does", m.label, other.label)
		}
	}
}

// "No limping" is progress of the election while faults go on: a manager that cannot renew its leadership
// in time does not keep those from leading that could. There are three checks.
//
// checkNoLimping: let some manager be well for a time T: it runs, is not being shut down, and the store is
// as fast for it as in a calm world. Let the store be slow for one manager at most, and let nothing be wrong with it as a
// whole, nor with timers. Then, in every such T that is longer than B of I6, some manager has authority at some instant. B is
// enough. Each write of a leader takes less than TTL x drift, or its record stands still for that long and its place is taken. A leader
// that has no authority resigns after two writes; that it writes too. Before that, the manager that is well may itself have
// resigned, from when it was not, and stand back. That is 4 TTL x drift, and B is more, because a lease is longer than three TTLs.
// If two managers were slow, now and then, each might take over from the other before the third sees that it could.
// What a manager asked before it was well may be under way for as long as it waits for the store, and T begins after that.
// Messages do not matter: nothing but the store decides who leads.
//
// checkWatched: a leader that a watch has shown its own renewal has authority, until TTL after it has sent that.
//
// checkStoodBack: a manager that has resigned because it limped does not lead again before another
// one has had a TTL for it.

// limping is what these checks remember. All instants are true time.
type limping struct {
	authority int64 // when some manager last had it
	trouble   int64 // until when something was wrong with the store, or what was asked of it then was under way
	era       int
}

// limpTick is how often the world is looked at. Authority that begins in between is seen when it does.
const limpTick = 250 * time.Millisecond

// watchOverLimping looks now and again.
func (o *oracle) watchOverLimping() {
	if o.cfg.Diskless {
		return
	}
	o.checkNoLimping()
	o.Later(limpTick, engine.Nowhere, 0, o.watchOverLimping)
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
			o.Violated(NoLimping, "no manager has had authority for %v, although %s is well and has been for %v", time.Duration(o.Now-l.authority), m.label, time.Duration(o.Now-m.unwell))
		}
	}
}

// renewal names a record that a manager has sent.
type renewal struct {
	term leasehold.Term
	beat uint64
}

// sends is a manager sending a record; what it sends again it has sent before.
func (m *managerHost) sends(s byrecord.Swap) {
	id := renewal{s.New.Term, s.New.Beat}
	if _, again := m.sent[id]; !again {
		m.sent[id] = m.now()
	}
}

// checkWatched looks at a manager that has just handled what a watch has shown it.
func (o *oracle) checkWatched(m *managerHost, r storage.Record) {
	now := m.now()
	sent, ours := m.sent[renewal{r.Term, r.Beat}]
	if !ours || r.Leader != m.id || r.Resigned || m.node.Term() != r.Term || now >= sent.Add(simTTL) {
		return
	}
	o.Checks[NoLimping]++
	if !m.node.Leads(now) {
		o.Violated(NoLimping, "%s does not act as leader, although it has seen its record of term %d, beat %d, which it sent %v ago", m.label, r.Term, r.Beat, now.Sub(sent))
	}
}

// resignations follows the leader record: who has resigned, and is not being shut down, limped, and stands back
// until there is another leader.
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
		o.Violated(NoLimping, "%s leads again %v after it has resigned because it limped", m.label, d)
	}
}

// forgetSent is a manager having slept: it can no longer tell when it sent something.
func (m *managerHost) forgetSent() {
	for id := range m.sent {
		m.sent[id] = -mono.Never / 2 // long ago, in any case
	}
}
