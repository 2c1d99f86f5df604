package manager

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/changelog"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// commit sends a batch to the store. Its changes are applied to a copy of the table first: a change that does not
// apply is a bug, and in the store it would stop every successor.
func (m *Machine) commit(now mono.Instant, b *storage.Batch) {
	next := m.state.table.Clone()
	for i := range b.Changes {
		if err := next.Apply(&b.Changes[i]); err != nil {
			panic(err) // the batch was computed from this table
		}
	}
	m.pending.stage, m.pending.batch, m.pending.table, m.pending.sentAt = commitSent, b, next, now
	m.emit(Commit{b})
}

// committed handles the outcome of the pending batch.
func (m *Machine) committed(now mono.Instant, o storage.Outcome) {
	if m.pending.stage != commitSent {
		return
	}
	if o == storage.Done {
		m.record(now)
		return
	}
	// A conflict may be caused by this leader's own batch, sent twice. Only the log shows that.
	m.emit(Note{What: NoteCommitUnknown, LSN: m.pending.batch.Prev, OwnLSN: m.pending.batch.Last()})
	m.pending.stage = commitUnknown
	if m.pending.fails++; m.pending.fails == 1 {
		m.emit(ReadEnd{})
		return
	}
	// Back off, in case the store rejects every request immediately.
	m.pending.rereadAt = now.Add(min(m.cfg.Backoff/8<<min(m.pending.fails-2, 3), m.cfg.Backoff))
}

// logEnd resolves the unknown outcome of the pending batch.
func (m *Machine) logEnd(now mono.Instant, e LogEnd) {
	switch {
	case m.pending.stage != commitUnknown:
	case e.Err:
		m.pending.rereadAt = now.Add(m.backoff())
	case e.Term != m.lead.term:
		m.deposed(e.Term)
	case e.LSN == m.pending.batch.Last():
		m.emit(Note{What: NoteCommitFound, LSN: e.LSN})
		m.record(now)
	case e.LSN == m.pending.batch.Prev:
		// The first attempt may still arrive, so the retry must be identical.
		m.emit(Note{What: NoteCommitRetry, LSN: e.LSN})
		m.pending.stage = commitSent
		m.emit(Commit{m.pending.batch})
	default:
		// No other leader writes in this term, so the store has lost writes. A new term has to start from its
		// present state.
		m.emit(Note{What: NoteLogForgotten, LSN: e.LSN, OwnLSN: m.pending.batch.Prev})
		m.emit(Outranked{m.lead.term + 1})
		m.pending.rereadAt = now.Add(m.cfg.Timing.Renew)
	}
}

// record adds the committed batch to the table and broadcasts it.
func (m *Machine) record(now mono.Instant) {
	batch, changes := m.pending.batch, m.pending.batch.Changes
	m.pending.stage, m.pending.batch, m.pending.fails = commitIdle, nil, 0
	if batch.Base != nil {
		m.rebased(now, batch)
		return
	}
	m.freed.recorded += uint64(len(m.pending.freed))
	for i := range m.pending.freed {
		m.recordedMove(&m.pending.freed[i])
	}
	m.pending.freed = nil
	m.state.table, m.pending.table, m.state.snapshot = m.pending.table, nil, nil
	for i := range changes {
		m.applyGrant(&changes[i])
	}
	m.pending.tickets = nil
	m.plan.rescanIfPending()
	m.state.log.Append(now, changes)
	news := &protocol.LookupReply{Namespace: m.cfg.Namespace, Leader: m.cfg.Self, Leads: true, Term: m.lead.term, LSN: m.state.table.LSN()}
	if !m.history.doubted() { // otherwise lookups may have other changes with these LSNs
		news.From, news.Changes = changes[0].LSN-1, changes
	}
	m.emit(Broadcast{news})
	if m.state.unsaved += len(changes); m.state.unsaved >= m.cfg.Log.SnapshotEvery {
		m.state.unsaved = 0
		m.emit(SaveSnapshot{&storage.Snapshot{Namespace: m.cfg.Namespace, Term: m.lead.term, Table: m.state.frozen()}})
	}
}

// applyGrant adds a granted lease to its peer, if the session still exists.
func (m *Machine) applyGrant(c *table.Change) {
	if c.Kind == table.Vacated {
		return
	}
	l := leasehold.Lease{Range: c.Range, Generation: c.Generation}
	p := m.members.sessions[c.Holder.Session]
	if p == nil || !p.member() || m.history.doubted() { // another owner may have had the generation
		m.emit(Note{What: NoteGrantOrphaned, Owner: c.Holder.Owner, Generation: c.Generation})
		m.moveConfirmed(m.pending.tickets[c.Generation])
		m.freed.add(freed{Lease: l, holder: c.Holder, cause: m.deaths.cause(c.Holder)})
		m.deaths.orphaned(c.Holder.Session, m.freed.total)
		return
	}
	p.held.add(l)
	if t, moved := m.pending.tickets[c.Generation]; moved {
		p.held.expect(c.Generation, t)
	}
	m.touch(p)
}

// lookup sends a lookup the changes that it lacks.
func (m *Machine) lookup(now mono.Instant, r *protocol.LookupRequest) {
	switch {
	case r.Validate() != nil:
		m.emit(Note{What: NoteBadMessage, Seq: r.Seq})
		return
	case r.Namespace != m.cfg.Namespace:
		m.emit(Note{What: NoteForeign})
		return
	case !m.lead.active(now):
		m.emit(Note{What: NoteNoAuthority})
		return
	}
	if m.history.doubted() && r.LSN != 0 {
		return // the lookup gets the whole table after the gap is stored
	}
	reply := &protocol.LookupReply{Namespace: m.cfg.Namespace, Leader: m.cfg.Self, Leads: true, Term: m.lead.term}
	if m.pending.stage != commitIdle {
		reply.Age = m.cfg.Timing.Drift.Stretch(now.Sub(m.pending.sentAt))
	}
	if m.history.doubted() {
		reply.Age = longAgo // the lookup must not treat its table as current
	}
	switch m.state.log.FillReply(now, r, m.state.table, m.state.frozen, reply) {
	case changelog.Ahead:
		m.emit(Note{What: NoteLookupAhead, LSN: r.LSN, OwnLSN: m.state.table.LSN()})
		return
	case changelog.Snapshot:
		m.emit(Note{What: NoteSnapshot, LSN: r.LSN, OwnLSN: m.state.table.LSN()})
	case changelog.Current, changelog.Changes:
	}
	m.emit(Answer{r.Lookup, reply})
}
