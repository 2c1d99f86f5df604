package byrecord

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// Problem: a leader limps (fail-slow) if its own writes of the record are slow while the store is
// not, because of its disk or its network. Authority counts from the send time of a renewal, and a
// renewal can only be sent after the previous one is confirmed, since each is guarded by the
// version of the one before. A write that takes w gives TTL-w of authority, and the next one
// arrives w later. So there are gaps if w is above TTL/2, and no authority at all if w is above
// TTL. A standby takes over only if the record is unchanged for TTL x drift. Between the two
// limits, the leader would neither lead nor be replaced, for ever.
//
// Idea: a leader counts late renewals, which arrive after its authority has expired. At three more
// late than timely ones, it steps down and writes its resignation, so that a standby takes over at
// once. Then it stands back: it campaigns only if no other manager has taken over within TTL x
// drift. After another has, it takes part in the next election like all others, and the fastest
// writer wins.
//
// Cost: if all managers are slow, or there is only one, a resignation is worse than gaps. It was
// fruitless if the manager leads again soon after. The interval until the next resignation doubles
// with each fruitless one, up to a limit. A leader that got almost no authority from two
// consecutive writes has nothing to lose, and resigns in any case.
const (
	tooLate    = 3 // late renewals, minus timely ones
	tooSpent   = 2 // consecutive spent writes
	spentShare = 8 // a write is spent if it leaves less than this part of the TTL
	restTTLs   = 8 // minimum interval of resignations in TTLs,
	restShift  = 5 // doubled for each fruitless one, at most so many times
)

// limp is the history of the speed of a manager's own writes.
type limp struct {
	late      int          // renewals that arrived after the authority expired, minus those that arrived in time
	spent     int          // consecutive writes with almost no authority, including the first one of a term
	yielded   mono.Instant // last resignation because of slow writes, 0 if none
	judged    bool         // it is decided whether that was fruitless
	fruitless int          // consecutive resignations after which this manager soon led again
}

// limps counts a renewal, overdue if the authority had expired before it arrived, and reports
// whether to resign.
func (m *Machine) limps(now mono.Instant, overdue bool) bool {
	l := &m.limp
	if overdue {
		l.late = min(l.late+1, tooLate)
	} else {
		l.late = max(l.late-1, 0)
	}
	m.countSpent(now)
	return l.spent >= tooSpent || l.late >= tooLate && !m.rests(now)
}

// countSpent counts a write that gives authority until m.lead.until.
func (m *Machine) countSpent(now mono.Instant) {
	if m.limp.spent++; m.lead.until.Sub(now) >= m.cfg.TTL/spentShare {
		m.limp.spent = 0
	}
}

// rests reports whether the last resignation is too recent for another one.
func (m *Machine) rests(now mono.Instant) bool {
	return m.limp.yielded != 0 && now < m.limp.yielded.Add(m.rest())
}

func (m *Machine) rest() time.Duration {
	return restTTLs * m.cfg.TTL << min(m.limp.fruitless, restShift)
}

// yield steps down because of slow writes; the resignation is written next.
func (m *Machine) yield(now mono.Instant, took time.Duration) {
	m.emit(Note{What: NoteLimping, Elapsed: took, Limit: m.cfg.TTL})
	m.lead.role, m.lead.lapsed = yielding, false
	m.limp.yielded, m.limp.judged = now, false
	m.lead.nextRenew = now
	m.emit(StepDown{})
}

// leadsAgain handles the start of a leadership: the last resignation was fruitless if it was
// recent.
func (m *Machine) leadsAgain(now mono.Instant) {
	l := &m.limp
	switch {
	case l.yielded == 0:
	case now >= l.yielded.Add(2*m.rest()):
		l.fruitless, l.yielded = 0, 0
	case !l.judged:
		l.fruitless++
		m.emit(Note{What: NoteFruitless, Resignations: l.fruitless})
	}
	l.judged, l.late, l.spent = true, 0, 0
	m.countSpent(now)
}

// standsBackUntil is the earliest time to campaign. It is 0 unless the record is this manager's own
// resignation. Then other managers come first, for as long as a healthy one needs.
func (m *Machine) standsBackUntil() mono.Instant {
	if !m.observed.record.Resigned || m.observed.record.Session != m.cfg.Session {
		return 0
	}
	return m.observed.at.Add(m.cfg.Drift.Stretch(m.cfg.TTL))
}
