package manager

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/changelog"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// A store that was restored from a backup has lost the end of its history: changes that
// lookups know, and leases that owners hold. A leader that takes over after all managers were
// down cannot tell such a store from one that is as they left it. Most of the time nothing was
// restored, and then nothing may be lost. So it decides by evidence:
//
//   - It grants nothing, and resumes no suspended lease, until every lease that the store may
//     have lost has expired: the time of one lease, until decideAt. It renews leases that
//     are not suspended: while they are valid, no other owner can hold the range.
//   - Then it resumes what owners claim, and the table goes on at much higher numbers, after a
//     gap (table.Gap): one guarded write takes the place of the log, before anything else is
//     written. Numbers of a history that was lost are never given out again, and nothing else
//     changes: lookups cross the gap, or get the whole table, and find what was lost and no more.
//   - An owner that holds a lease that the table has never had is evidence that history was
//     lost. From then on no suspended lease is resumed, and those that were are recalled: their
//     ranges may have been another owner's since. Evidence counts in its own namespace.
//   - A leader record that names another cluster is evidence in all namespaces. It stays in the
//     record as LostBelow, so that it outlives the leader.
//
// What lookups report is no evidence: they may only read.
//
// If an owner shows that history was lost, and nothing else has, its claim may be all that
// does. Then the table is marked at once, before any owner is answered, and the wait follows.

// longAgo is how old the table of such a store may be, as lookups are told until the gap is
// stored: too old for any of them to rely on.
const longAgo = 24 * time.Hour

// assessHistory decides whether the table that we found may have lost history. One that is below the
// floor was found by a leader that did not live to store the gap.
func (m *Machine) assessHistory(unfinished bool) {
	// Unfinished: a leader before us had evidence.
	m.history.proven, m.history.marked = unfinished || !m.cfg.Volatile && uint64(m.state.table.LSN()) < m.cfg.Takeover.LostBelow, unfinished
	if !m.cfg.Volatile && (m.cfg.Takeover.Uncertain || m.history.proven || uint64(m.state.table.LSN()) < m.cfg.Takeover.Floor) {
		m.history.gap = gapWaits
		m.raiseBase(0, max(m.cfg.Takeover.Floor, m.cfg.Takeover.Clock))
	}
}

// resume decides on suspended leases that a peer has from leaders before us: they go on, unless
// history was lost in which their ranges may have been another owner's.
func (m *Machine) resume(p *peer) {
	suspended := p.claims.resumable()
	switch {
	case m.history.proven && suspended:
		m.history.recallUpTo(p, m.history.found.generation)
	case m.history.proven:
		m.history.recallUpTo(p, p.claims.resumedUpTo)
	case suspended:
		p.claims.resumption = resumed
	}
}

// resumeDeferred answers those who were to be answered later, and reports whether all owners
// that are heard have said what they have. They do so at once, and are not waited for much
// longer than that takes.
func (m *Machine) resumeDeferred(now mono.Instant) bool {
	if now < m.history.decideAt {
		m.wakeAt(m.history.decideAt)
		return false
	}
	complete := true
	for _, p := range m.members.peers() {
		if p.claims.deferred() {
			p.claims.undefer()
			m.emit(Note{What: NoteTakeoverRenews, Owner: p.holder.Owner, Leases: len(p.held.leases)})
			m.sendLeases(now, p)
		}
		complete = complete && (p.acks.echo == 0 || p.claims.exact())
	}
	limit := m.history.decideAt.Add(m.cfg.Backoff)
	if complete || now >= limit {
		return true
	}
	m.wakeAt(limit)
	return false
}

// Undecided is how long it still takes until suspended leases resume and ranges are granted, since
// the store may have lost history; 0 if nothing is waited for.
func (m *Machine) Undecided(now mono.Instant) time.Duration {
	if m.lead.phase == takingOver || !m.history.undecided() {
		return 0
	}
	return max(0, m.history.decideAt.Sub(now))
}

// detectLostHistory notices that the store has lost a lease that an owner has: no owner learns of a lease
// before it is stored. One that we know nothing of is above all that the store had, or inside a
// gap. A number that cannot have been given out is a mistake of the owner's.
func (m *Machine) detectLostHistory(now mono.Instant, r *protocol.LeaseRequest) {
	had, known := leasehold.Generation(0), m.history.found.generation
	if r.Term == m.lead.term {
		known = m.newest()
	}
	for _, l := range r.Leases {
		had = max(had, l.Generation)
		if m.state.table.LostGeneration(l.Generation) {
			m.recordLostHistory(now, r.Holder.Owner, l.Generation)
		}
	}
	if had > known && !m.cfg.Volatile && storage.Plausible(uint64(had), uint64(m.history.found.generation), m.clock(now)) {
		m.recordLostHistory(now, r.Holder.Owner, had)
	}
}

// recordLostHistory takes it for proven that history was lost, up to a generation at least.
func (m *Machine) recordLostHistory(now mono.Instant, by leasehold.OwnerID, had leasehold.Generation) {
	above := uint64(had) >= max(m.history.base, uint64(m.newest()))
	above = above || !m.history.proven && !m.history.doubted() // the store was taken for what it was
	if m.history.proven && !above {
		return
	}
	m.emit(Note{What: NoteForgotten, Owner: by, Generation: had, NewestGeneration: m.history.found.generation})
	if above {
		if m.history.doubted() {
			m.history.gap = gapWaits // a successor will find out as we did
		} else {
			m.history.gap = gapUrgent
			m.history.decideAt = max(m.history.decideAt, now.Add(m.cfg.Timing.Hold())) // recalled leases have ended by then
		}
		m.raiseBase(uint64(had), m.clock(now))
	}
	m.history.proven = true
	for _, p := range m.members.peers() {
		m.recallResumed(now, p)
	}
}

// recallResumed recalls what a peer has resumed, in our term or before it, or refuses to resume
// it: its ranges may have been another owner's in the history that was lost.
func (m *Machine) recallResumed(now mono.Instant, p *peer) {
	upTo := p.claims.resumedUpTo
	if p.claims.resumption != notResumed {
		upTo = m.history.found.generation
	}
	if upTo == 0 {
		return
	}
	deferred := p.claims.deferred()
	p.claims.resumption = notResumed
	m.history.recallUpTo(p, upTo)
	if deferred {
		m.sendLeases(now, p)
	}
	m.touch(p)
}

// clock is what the wall clock stands for, 0 if that is not known.
func (m *Machine) clock(now mono.Instant) uint64 {
	if m.cfg.Takeover.Clock == 0 {
		return 0
	}
	return m.cfg.Takeover.Clock + storage.Clock(int64(now.Sub(m.history.since)/time.Second))
}

// raiseBase lets the table go on above a number and all that we know, after which others may
// have been given out: at what the clock stands for, if that is above.
func (m *Machine) raiseBase(n, clock uint64) {
	m.history.base = storage.Above(max(n, m.history.base, uint64(m.newest()), uint64(m.state.table.LSN())), clock, m.lead.term)
}

// rebase stores the gap, once no owner can have a lease that the table does not know of; at
// once if only we know of it.
func (m *Machine) rebase(now mono.Instant) {
	if m.history.gap != gapUrgent && !m.resumeDeferred(now) {
		return
	}
	m.commit(now, &storage.Batch{
		Namespace: m.cfg.Namespace, Term: m.lead.term, Prev: m.state.table.LSN(),
		Base: m.state.table.Rebased(m.history.base, m.history.marked, m.provablyHeld), Unfinished: now < m.history.decideAt,
	})
}

// reconcileAnswered compares what owners have reported during the wait with the table, and frees
// what they lack. The newest report of an owner reflects all our messages but the reply to it.
// That reply has offered what the owner had, and nothing else: so no message under way gives an
// owner back what it lacks. Without this, these ranges would wait for its next renewal.
func (m *Machine) reconcileAnswered(now mono.Instant) {
	for _, p := range m.members.peers() {
		if p.claims.stage == claimsExact {
			p.claims.stage = claimsReconciled
			m.reconcile(now, p, &protocol.LeaseRequest{Leases: p.claims.leases, Imports: p.moves.imports, Moves: p.moves.reports})
			m.moves.markReady(p)
		}
	}
}

// surelyHeld reports whether a lease is held, and was all along: its holder says so, and we
// have not granted it, since others may then have had the same generation.
func (m *Machine) provablyHeld(r leasehold.Range, e table.Entry) bool {
	p := m.members.sessions[e.Holder.Session]
	return p != nil && p.claims.exact() && e.Generation <= m.history.found.generation && slices.ContainsFunc(p.claims.leases, func(l leasehold.Lease) bool {
		return l.Generation == e.Generation && l.Range.Covers(r)
	})
}

// rebased goes on from the table after the gap. If owners may have leases that it knows nothing
// of, that is waited for and there is another gap. Otherwise lookups cross the gap, or ask for
// the table.
func (m *Machine) rebased(now mono.Instant, b *storage.Batch) {
	m.emit(Note{What: NoteRebased, LSN: b.Prev, OwnLSN: b.Base.LSN()})
	crossing := m.crossing(b)
	m.state.table, m.state.snapshot = b.Base.Clone(), b.Base
	m.state.log = changelog.New(b.Base.LSN(), m.cfg.Log.Changes, m.cfg.Log.Age)
	if crossing != nil {
		m.state.log = changelog.NewAcross(crossing, m.cfg.Log.Changes, m.cfg.Log.Age)
	}
	m.state.unsaved = 0
	switch {
	case m.history.base != uint64(b.Base.LSN()): // an owner has shown us more
	case b.Unfinished:
		m.history.gap, m.history.marked = gapWaits, true
		m.raiseBase(0, m.clock(now))
	default:
		m.history.gap, m.history.base = gapNone, 0
		m.reconcileAnswered(now)
	}
	m.plan.rescanIfPending()
	m.emit(Broadcast{&protocol.LookupReply{
		Namespace: m.cfg.Namespace, Leader: m.cfg.Self, Leads: true, Term: m.lead.term, LSN: m.state.table.LSN(), Crossing: crossing,
	}})
}

// crossing returns what takes a lookup across the gap, so that it does not need the whole
// table; nil if it does. A lookup at the last LSN before the gap must have the table that we
// found: so nothing was written since, and nothing shows that history was lost.
func (m *Machine) crossing(b *storage.Batch) *table.Crossing {
	if m.history.proven || m.history.marked || b.Unfinished || b.Prev != m.history.found.lsn {
		return nil
	}
	return m.state.table.Crossing(b.Base)
}
