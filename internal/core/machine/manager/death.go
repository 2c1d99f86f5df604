package manager

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// Waiting until a lease expires is only needed without proof that its holder is dead. A supervisor that has waited
// for its child has this proof, and presents the token whose hash the session has announced. Then the leader records
// the session's ranges as free, grants them in the same batch, and replies after the commit.
//
// The proof is about one session. A later session of the same owner has its own token, and its requests are not
// those of the dead one.
//
// Messages of the dead session may still arrive. They are refused. Otherwise the session would be a new one, which
// blocks its owner name until it expires without an acknowledgement. It could not get a lease, since a dead
// process acknowledges no message: so a bounded list of deaths is enough.

type (
	// Died is the proof that the process of a session has ended. The reply is [DeathReply].
	Died struct {
		ID uint64 // chosen by the caller
		*protocol.DeathNotice
	}

	// DeathReply is the reply to [Died].
	DeathReply struct {
		ID      uint64
		Outcome protocol.DeathOutcome
	}
)

func (Died) managerEvent()        {}
func (DeathReply) managerAction() {}

// deaths are the sessions that were proven dead in this term, and the notices without a reply.
type deaths struct {
	proven  map[leasehold.Session]*death
	number  uint64 // of the newest
	waiting []deathReply
}

// A death is a session that was proven dead.
type death struct {
	hash   table.DeathHash
	until  mono.Instant // later messages of it are not expected
	number uint64       // in order of the deaths
}

// A deathReply is sent after the end of the session's leases is recorded, and every grant to it: otherwise, after a
// failure of this leader, its successor would wait for leases that no process holds.
type deathReply struct {
	DeathReply
	session leasehold.Session
	due     uint64        // required value of freedLeases.recorded
	lsn     leasehold.LSN // required LSN of the table
}

// lateMessages is how long messages of a dead process may arrive: longer than networks and receive queues keep them.
const lateMessages = time.Minute

// deathsPerOwner bounds the deaths that a leader keeps, in multiples of Config.MaxOwners.
const deathsPerOwner = 4

// died handles a notice.
func (m *Machine) died(now mono.Instant, e Died) {
	outcome := m.assessDeath(now, e.DeathNotice)
	reply := DeathReply{e.ID, outcome}
	if outcome == protocol.DeathUndecided || outcome == protocol.DeathRefused {
		m.emit(reply)
		return
	}
	if p := m.members.sessions[e.Session]; p != nil && outcome == protocol.DeathRecorded {
		m.endDead(now, p)
	}
	m.deaths.waiting = append(m.deaths.waiting, deathReply{reply, e.Session, m.freed.total, m.pending.last()})
}

// assessDeath returns the reply to a notice, given that the session's leases end if it is DeathRecorded. While this
// leader does not know whether the store has lost history, it grants nothing and does not act on notices either.
func (m *Machine) assessDeath(now mono.Instant, n *protocol.DeathNotice) protocol.DeathOutcome {
	p := m.members.sessions[n.Session]
	switch dead := m.deaths.proven[n.Session]; {
	case n.Validate() != nil || n.Namespace != m.cfg.Namespace:
		return protocol.DeathRefused
	case !m.lead.active(now) || m.history.undecided() || m.history.gap == gapUrgent || len(m.deaths.waiting) >= m.cfg.MaxOwners:
		return protocol.DeathUndecided
	case p == nil && dead != nil && dead.hash.Verifies(n.Token):
		return protocol.DeathRecorded // a repetition
	case p == nil || p.holder.DeathHash.IsZero() || m.members.duplicates[n.Session] != nil:
		return protocol.DeathUnknown
	case p.holder.Owner != n.Owner || !p.holder.DeathHash.Verifies(n.Token):
		m.emit(Note{What: NoteDeathRefused, Owner: n.Owner})
		return protocol.DeathRefused
	case m.awaitsTargets(now, p):
		return protocol.DeathUndecided
	}
	return protocol.DeathRecorded
}

// awaitsTargets reports whether the state of a dead session's range may be with a target that returns.
func (m *Machine) awaitsTargets(now mono.Instant, p *peer) bool {
	m.awaitTargets(now, p, m.history.credible(p, p.moves.reports))
	return len(p.moves.awaiting) > 0
}

// endDead ends a session that is dead. Ranges that it has handed over go to their targets; the state of the others is
// lost.
func (m *Machine) endDead(now mono.Instant, p *peer) {
	m.emit(Note{What: NoteDied, Owner: p.holder.Owner, Leases: len(p.held.leases)})
	m.releaseHandedOver(now, p, m.history.credible(p, p.moves.reports), leasehold.CauseDied)
	m.remove(p, leasehold.CauseDied)
	m.deaths.add(now, p.holder, now.Add(max(lateMessages, m.cfg.Timing.Hold())), deathsPerOwner*m.cfg.MaxOwners)
}

// add adds a death, and removes those that are over. Beyond the limit it replaces the oldest.
func (d *deaths) add(now mono.Instant, h *table.Holder, until mono.Instant, most int) {
	if d.proven == nil {
		d.proven = make(map[leasehold.Session]*death)
	}
	d.number++
	first := h.Session
	d.proven[first] = &death{h.DeathHash, until, d.number}
	for session, old := range d.proven {
		if now >= old.until {
			delete(d.proven, session)
		} else if old.number < d.proven[first].number {
			first = session
		}
	}
	if len(d.proven) > most {
		delete(d.proven, first)
	}
}

// late reports whether a request is of a session that was proven dead.
func (d *deaths) late(h *table.Holder) bool {
	dead := d.proven[h.Session]
	return dead != nil && dead.hash == h.DeathHash
}

// cause returns why the lease of a session ends that is gone.
func (d *deaths) cause(h *table.Holder) leasehold.Cause {
	if d.proven[h.Session] != nil {
		return leasehold.CauseDied
	}
	return leasehold.CauseExpired
}

// orphaned delays the replies about a session whose grant was committed after its end.
func (d *deaths) orphaned(s leasehold.Session, due uint64) {
	for i := range d.waiting {
		if d.waiting[i].session == s {
			d.waiting[i].due = due
		}
	}
}

// sendDeathReplies replies to the notices whose result is recorded.
func (m *Machine) sendDeathReplies() {
	m.deaths.waiting = slices.DeleteFunc(m.deaths.waiting, func(r deathReply) bool {
		recorded := r.due <= m.freed.recorded && r.lsn <= m.state.table.LSN()
		if recorded {
			m.emit(r.DeathReply)
		}
		return recorded
	})
}
