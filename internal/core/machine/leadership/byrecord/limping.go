package byrecord

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// A leader limps if its own writes of the record are slow while the store is not: its disk is, or its
// way to the store. Authority counts from when a renewal was sent, and the next renewal can only be
// sent when the last one is known to have been written, since each is guarded by the version of the one
// before. A write that takes w gives TTL-w of authority, and the next one arrives w later: there are
// gaps if w is above TTL/2, and there is no authority at all if w is above TTL. A standby
// takes over only if the record stands still for TTL x drift. Between the two, the leader would neither
// lead nor be replaced, for ever.
//
// So a leader counts late renewals: those that arrive when its authority has run out. If there
// were three more late ones than timely ones, it steps down and writes that it has resigned, so that
// a standby takes over at once. Then it stands back: it becomes a candidate only if no other manager has taken over
// within TTL x drift. Once another has, it takes part in the next election like all others, and the fastest writer wins.
//
// All managers may be slow, or there may be no other: then a resignation is worse than gaps.
// It was fruitless if the manager leads again soon after. The more of them in a row, the longer until the next
// one, up to a bound. A leader that two writes in a row have brought next to no authority has nothing to lose,
// and resigns however often that was fruitless.
const (
	tooLate    = 3 // late renewals, less timely ones
	tooSpent   = 2 // spent writes in a row
	spentShare = 8 // a write is spent if it leaves less than this part of the TTL
	restTTLs   = 8 // a resignation is followed by so many TTLs without another one,
	restShift  = 5 // times 2 for each fruitless one, so many times at most
)

// limp is what a manager has learned about the speed of its own writes.
type limp struct {
	late      int          // renewals that arrived without authority, less those that arrived in time
	spent     int          // writes in a row that brought no authority worth the name, the first one of a term included
	yielded   mono.Instant // when we last resigned for it, 0 if never
	judged    bool         // whether that was fruitless is known
	fruitless int          // resignations in a row after which we soon led again
}

// limps takes in a renewal, overdue if authority had run out when it arrived, and reports whether to resign.
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

// countSpent takes in a write that has given us authority until m.until.
func (m *Machine) countSpent(now mono.Instant) {
	if m.limp.spent++; m.lead.until.Sub(now) >= m.cfg.TTL/spentShare {
		m.limp.spent = 0
	}
}

// rests reports whether we resigned not long ago.
func (m *Machine) rests(now mono.Instant) bool {
	return m.limp.yielded != 0 && now < m.limp.yielded.Add(m.rest())
}

func (m *Machine) rest() time.Duration {
	return restTTLs * m.cfg.TTL << min(m.limp.fruitless, restShift)
}

// yield steps down because we limp; the record will say so.
func (m *Machine) yield(now mono.Instant, took time.Duration) {
	m.note(NoteLimping, uint64(took), uint64(m.cfg.TTL))
	m.lead.role, m.lead.lapsed = yielding, false
	m.limp.yielded, m.limp.judged = now, false
	m.lead.nextRenew = now
	m.emit(StepDown{})
}

// leadsAgain begins a leadership: the last resignation was fruitless if it is not long ago.
func (m *Machine) leadsAgain(now mono.Instant) {
	l := &m.limp
	switch {
	case l.yielded == 0:
	case now >= l.yielded.Add(2*m.rest()):
		l.fruitless, l.yielded = 0, 0
	case !l.judged:
		l.fruitless++
		m.note(NoteFruitless, uint64(l.fruitless), 0)
	}
	l.judged, l.late, l.spent = true, 0, 0
	m.countSpent(now)
}

// standsBackUntil is when we become a candidate at the earliest: any time, unless the record says that we
// have resigned. Then others come first, for as long as one of them needs that is well.
func (m *Machine) standsBackUntil() mono.Instant {
	if !m.observed.record.Resigned || m.observed.record.Session != m.cfg.Session {
		return 0
	}
	return m.observed.at.Add(m.cfg.Drift.Stretch(m.cfg.TTL))
}
