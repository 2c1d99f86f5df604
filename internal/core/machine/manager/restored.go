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

// A store that was restored from a backup has lost the end of its history: changes that lookups have, and leases
// that owners hold. A leader that takes over after all managers were down cannot distinguish such a store from an
// unchanged one. In most cases nothing was restored, and then no state may be lost. So it decides by evidence:
//
//   - It grants nothing, and resumes no suspended lease, until every lease that the store may have lost has
//     expired: one lease time, until decideAt. It renews leases that are not suspended: while they are valid, no
//     other owner can hold the range.
//   - Then it resumes the leases that owners claim, and the table continues at much higher numbers, after a gap
//     (table.Gap): one guarded write replaces the log before anything else is written. Numbers of a lost history
//     are never assigned again, and nothing else changes: lookups cross the gap, or get the whole table, and
//     report exactly the actual losses.
//   - An owner with a lease that the table never had is evidence that history was lost. From then on no
//     suspended lease is resumed, and resumed ones are recalled: their ranges may have been another owner's
//     since. Evidence counts in its own namespace. Only the numbers that it names count, within a limit, in all
//     namespaces whose gap is not stored yet.
//   - A leader record that names another cluster is evidence in all namespaces. It stays in the record as
//     LostBelow, so that it outlives the leader.
//
// Reports of lookups are no evidence: lookups have only read access.
//
// An owner's claim may be the only evidence that history was lost. Then the table is marked at once, before any
// reply to an owner, and the wait follows.

// longAgo is the age of the table that lookups get until the gap is stored: too old for any of them to rely on.
const longAgo = 24 * time.Hour

// assessHistory decides whether the table at the takeover may have lost history. A table below the floor belongs to
// an earlier leader that failed before it stored the gap.
func (m *Machine) assessHistory(unfinished bool) {
	// unfinished: an earlier leader had evidence.
	m.history.proven, m.history.marked = unfinished || !m.cfg.Volatile && uint64(m.state.table.LSN()) < m.cfg.Takeover.LostBelow, unfinished
	if !m.cfg.Volatile && (m.cfg.Takeover.Uncertain || m.history.proven || uint64(m.state.table.LSN()) < m.cfg.Takeover.Floor) {
		m.history.gap = gapWaits
		m.raiseBase(0, max(m.cfg.Takeover.Floor, m.cfg.Takeover.Clock))
	}
}

// resume decides on suspended leases of earlier leaders that a peer claims: they are resumed, unless history was
// lost, in which their ranges may have been another owner's.
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

// resumeDeferred sends the deferred replies, and reports whether all connected owners have made exact claims.
// Owners answer at once, so the wait for them is short.
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

// Undecided returns the remaining time until suspended leases resume and ranges are granted, if the store may have
// lost history; 0 if there is no wait.
func (m *Machine) Undecided(now mono.Instant) time.Duration {
	if m.lead.phase == takingOver || !m.history.undecided() {
		return 0
	}
	return max(0, m.history.decideAt.Sub(now))
}

// detectLostHistory looks for claims of leases that the store has lost: leases are stored before they are sent.
// Such a lease is newer than the whole table, or inside a gap. An implausible generation is an error of the owner.
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

// recordLostHistory records the evidence that history was lost, at least up to a generation.
func (m *Machine) recordLostHistory(now mono.Instant, by leasehold.OwnerID, had leasehold.Generation) {
	above := uint64(had) >= max(m.history.base, uint64(m.newest()))
	above = above || !m.history.proven && !m.history.doubted() // the store was assumed to be complete
	if m.history.proven && !above {
		return
	}
	m.emit(Note{What: NoteForgotten, Owner: by, Generation: had, NewestGeneration: m.history.found.generation})
	if above {
		if m.history.doubted() {
			m.history.gap = gapWaits // a successor finds the same evidence
		} else {
			m.history.gap = gapUrgent
			m.history.decideAt = max(m.history.decideAt, now.Add(m.cfg.Timing.Hold())) // recalled leases have expired then
		}
		m.raiseBase(uint64(had), m.clock(now))
		m.emit(HistoryLost{uint64(had)})
	}
	m.history.proven = true
	for _, p := range m.members.peers() {
		m.recallResumed(now, p)
	}
}

// recallResumed recalls the leases that a peer has resumed, in this term or before, or refuses to resume them:
// their ranges may have been another owner's in the lost history.
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

// clock returns the number of the wall clock, 0 if it is unknown.
func (m *Machine) clock(now mono.Instant) uint64 {
	if m.cfg.Takeover.Clock == 0 {
		return 0
	}
	return m.cfg.Takeover.Clock + storage.Clock(int64(now.Sub(m.history.since)/time.Second))
}

// raiseBase sets the base above a number and all known ones, or to the number of the clock if that is higher.
func (m *Machine) raiseBase(n, clock uint64) {
	m.history.base = storage.Above(max(n, m.history.base, uint64(m.newest()), uint64(m.state.table.LSN())), clock, m.lead.term)
}

// raiseFloor raises the base to a floor that the evidence of another namespace requires.
func (m *Machine) raiseFloor(floor uint64) {
	if m.history.doubted() {
		m.history.base = max(m.history.base, floor)
	}
}

// rebase stores the gap, once no owner can have a lease that the table lacks; at once if this leader has the only
// evidence.
func (m *Machine) rebase(now mono.Instant) {
	if m.history.gap != gapUrgent && !m.resumeDeferred(now) {
		return
	}
	m.commit(now, &storage.Batch{
		Namespace: m.cfg.Namespace, Term: m.lead.term, Prev: m.state.table.LSN(),
		Base: m.state.table.Rebased(m.history.base, m.history.marked, m.provablyHeld), Unfinished: now < m.history.decideAt,
	})
}

// reconcileAnswered compares the claims that owners sent during the wait with the table, and frees the leases that
// they lack. The newest claims acknowledge all messages but the reply to them. That reply offered only leases that
// the owner had: so no message in flight restores a lease that it lacks. Otherwise these ranges would wait for its
// next renewal.
func (m *Machine) reconcileAnswered(now mono.Instant) {
	for _, p := range m.members.peers() {
		if p.claims.stage == claimsExact {
			p.claims.stage = claimsReconciled
			m.reconcile(now, p, &protocol.LeaseRequest{Leases: p.claims.leases, Imports: p.moves.imports, Moves: p.moves.reports})
			m.moves.markReady(p)
		}
	}
}

// provablyHeld reports whether a lease is held and was held without a gap: its holder claims it, and this leader
// has not granted it, since then another owner may have had the same generation.
func (m *Machine) provablyHeld(r leasehold.Range, e table.Entry) bool {
	p := m.members.sessions[e.Holder.Session]
	return p != nil && p.claims.exact() && e.Generation <= m.history.found.generation && slices.ContainsFunc(p.claims.leases, func(l leasehold.Lease) bool {
		return l.Generation == e.Generation && l.Range.Covers(r)
	})
}

// rebased continues with the table after the gap. If owners may have leases that the table lacks, a wait and
// another gap follow. Otherwise lookups cross the gap, or request the table.
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
	case m.history.base != uint64(b.Base.LSN()): // an owner has claimed a newer lease meanwhile
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

// crossing returns the message that takes a lookup across the gap without a snapshot; nil if it needs one. A lookup
// at the last LSN before the gap must have the table of the takeover: so nothing was written since, and there is no
// evidence of lost history.
func (m *Machine) crossing(b *storage.Batch) *table.Crossing {
	if m.history.proven || m.history.marked || b.Unfinished || b.Prev != m.history.found.lsn {
		return nil
	}
	return m.state.table.Crossing(b.Base)
}
