package manager

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/changelog"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// commit puts a batch under way. Its changes are applied to a copy of the table first: one
// that does not apply is a bug of ours, and must not be stored, where it would stop every
// successor.
func (m *Machine) commit(now mono.Instant, b *storage.Batch) {
	next := m.state.table.Clone()
	for i := range b.Changes {
		if err := next.Apply(&b.Changes[i]); err != nil {
			panic(err) // it was decided on this very table
		}
	}
	m.pending.stage, m.pending.batch, m.pending.table, m.pending.sentAt = commitSent, b, next, now
	m.emit(Commit{b})
}

// committed handles the outcome of the batch under way.
func (m *Machine) committed(now mono.Instant, o storage.Outcome) {
	if m.pending.stage != commitSent {
		return
	}
	if o == storage.Done {
		m.record(now)
		return
	}
	// Even a conflict may be our own batch, sent twice, of which the first got
	// through. Only the log knows.
	m.emit(Note{What: NoteCommitUnknown, LSN: m.pending.batch.Prev, OwnLSN: m.pending.batch.Last()})
	m.pending.stage = commitUnknown
	if m.pending.fails++; m.pending.fails == 1 {
		m.emit(ReadEnd{})
		return
	}
	// A store that refuses everything at once is not to be asked a thousand
	// times a second.
	m.pending.rereadAt = now.Add(min(m.cfg.Backoff/8<<min(m.pending.fails-2, 3), m.cfg.Backoff))
}

// logEnd resolves a doubt about the batch under way.
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
		// It may still arrive: so it is sent again just as it was.
		m.emit(Note{What: NoteCommitRetry, LSN: e.LSN})
		m.pending.stage = commitSent
		m.emit(Commit{m.pending.batch})
	default:
		// Nobody else writes in our term: the store has forgotten what we wrote. Another is
		// to lead, from what it has now.
		m.emit(Note{What: NoteLogForgotten, LSN: e.LSN, OwnLSN: m.pending.batch.Prev})
		m.emit(Outranked{m.lead.term + 1})
		m.pending.rereadAt = now.Add(m.cfg.Timing.Renew)
	}
}

// record makes the committed batch part of the table and lets it be known.
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
	if !m.history.doubted() { // otherwise others may have heard of other changes with these numbers
		news.From, news.Changes = changes[0].LSN-1, changes
	}
	m.emit(Broadcast{news})
	if m.state.unsaved += len(changes); m.state.unsaved >= m.cfg.Log.SnapshotEvery {
		m.state.unsaved = 0
		m.emit(SaveSnapshot{&storage.Snapshot{Namespace: m.cfg.Namespace, Term: m.lead.term, Table: m.state.frozen()}})
	}
}

// applyGrant gives a granted lease to its peer, if that is still there.
func (m *Machine) applyGrant(c *table.Change) {
	if c.Kind == table.Vacated {
		return
	}
	l := leasehold.Lease{Range: c.Range, Generation: c.Generation}
	p := m.members.sessions[c.Holder.Session]
	if p == nil || !p.member() || m.history.doubted() { // others may have had the generation
		m.emit(Note{What: NoteGrantOrphaned, Owner: c.Holder.Owner, Generation: c.Generation})
		m.moveConfirmed(m.pending.tickets[c.Generation])
		m.freed.add(freed{Lease: l, holder: c.Holder, cause: leasehold.CauseExpired})
		return
	}
	p.held.add(l)
	if t, moved := m.pending.tickets[c.Generation]; moved {
		p.held.expect(c.Generation, t)
	}
	m.touch(p)
}

// lookup tells a lookup what it has missed.
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
		return // it will get the whole table
	}
	reply := &protocol.LookupReply{Namespace: m.cfg.Namespace, Leader: m.cfg.Self, Leads: true, Term: m.lead.term}
	if m.pending.stage != commitIdle {
		reply.Age = m.cfg.Timing.Drift.Stretch(now.Sub(m.pending.sentAt))
	}
	if m.history.doubted() {
		reply.Age = longAgo // it is not to believe that it knows all
	}
	switch m.state.log.Tell(now, r, m.state.table, m.state.frozen, reply) {
	case changelog.Ahead:
		m.emit(Note{What: NoteLookupAhead, LSN: r.LSN, OwnLSN: m.state.table.LSN()})
		return
	case changelog.Snapshot:
		m.emit(Note{What: NoteSnapshot, LSN: r.LSN, OwnLSN: m.state.table.LSN()})
	case changelog.Current, changelog.Changes:
	}
	m.emit(Answer{r.Lookup, reply})
}
