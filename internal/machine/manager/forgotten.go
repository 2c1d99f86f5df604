package manager

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/changelog"
	"github.com/leasehold-dev/leasehold/internal/mono"
	"github.com/leasehold-dev/leasehold/internal/protocol"
	"github.com/leasehold-dev/leasehold/internal/storage"
	"github.com/leasehold-dev/leasehold/internal/table"
)

// A store that was restored from an old backup has forgotten changes that lookups know,
// and leases that owners have. None of their numbers may be given out again. So the table
// is renumbered: it goes on far above, in one write that takes the place of the log, and
// nothing else is written before it. Whoever leads next finds it, and lookups, of which
// none can follow on, start over with the whole table.
//
// Owners may also have leases by what was forgotten, until their time is over. So that is
// waited for before the write: by then it is known who holds what, and nobody acts any more
// on what lookups then take for lost. If nothing but what somebody remembers shows that the
// store was restored, the table is renumbered at once as well, before anybody is answered: who
// remembers will have forgotten when the next leader asks. That is not the end of it, and
// whoever finds such a table waits as well, and renumbers it again.

// longAgo is how old the table of such a store may be, as lookups are told until it is renumbered:
// too old for any of them to rely on.
const longAgo = 24 * time.Hour

// suspect takes a table that is below the floor, or may be old wherever it is, for one
// from an old backup; and one that is to be renumbered once more.
func (m *Machine) suspect(unfinished bool) {
	if !m.cfg.Volatile && (m.cfg.Forgotten || unfinished || uint64(m.table.LSN()) < m.cfg.Floor) {
		m.goOnAbove(0, max(m.cfg.Floor, m.cfg.Clock))
	}
}

// remind notices that the store has forgotten what an owner has from leaders before us: nobody hears of a
// lease before it is stored. An owner that makes it up can do so once in a term.
func (m *Machine) remind(now mono.Instant, r *protocol.LeaseRequest) {
	had, known := leasehold.Generation(0), m.found.generation
	if r.Term == m.term {
		known = m.newest()
	}
	for _, l := range r.Leases {
		had = max(had, l.Generation)
	}
	m.reminded(now, r.Holder.Owner, uint64(had), uint64(known))
}

// remindedBy notices that the store has forgotten changes that a lookup has heard of: from leaders before us, if
// it has not heard of us.
func (m *Machine) remindedBy(now mono.Instant, r *protocol.LookupRequest) {
	known := m.table.LSN()
	if r.Term != 0 && r.Term < m.term {
		known = m.found.lsn
	}
	m.reminded(now, "", uint64(r.LSN), uint64(known))
}

// reminded handles a number that somebody has. It shows that the store has forgotten it, if that had
// numbers up to known and we do not know better yet. One that is above what our clock stands for, or far above what we
// know if the clock is no help, is made up; and nobody is believed twice. Other namespaces have been restored as well,
// though nobody may remember: so we also ask for another term, in which all are renumbered.
func (m *Machine) reminded(now mono.Instant, by leasehold.OwnerID, had, known uint64) {
	known = max(known, m.renumber)
	if m.believed || m.cfg.Volatile || had <= known || !storage.Plausible(had, known, m.clock(now), m.term) {
		return
	}
	m.believed, m.unmarked = true, true
	m.note(NoteForgotten, by, had, known)
	m.goOnAbove(had, m.clock(now))
	m.emit(Outranked{m.term + 1})
}

// doubted reports whether the table may be old.
func (m *Machine) doubted() bool { return m.renumber != 0 }

// clock is what the wall clock stands for, 0 if that is not known.
func (m *Machine) clock(now mono.Instant) uint64 {
	if m.cfg.Clock == 0 {
		return 0
	}
	return m.cfg.Clock + storage.Clock(int64(now.Sub(m.since)/time.Second))
}

// goOnAbove renumbers the table, above a number and all that we know, after which others may have been given
// out that nobody remembers: at what the clock stands for, if that is above.
func (m *Machine) goOnAbove(n, clock uint64) {
	m.renumber = storage.Above(max(n, uint64(m.newest()), uint64(m.table.LSN())), clock, m.term)
}

// rebase writes the renumbered table, once nobody can have a lease that it does not know of, and before that
// if only we know of it.
func (m *Machine) rebase(now mono.Instant) {
	if now < m.inheritUntil && !m.unmarked {
		m.wakeAt(m.inheritUntil)
		return
	}
	base := m.table.Renumbered(leasehold.LSN(m.renumber), leasehold.Generation(m.renumber), m.surelyHeld)
	m.commit(now, &storage.Batch{
		Namespace: m.cfg.Namespace, Term: m.term, Prev: m.table.LSN(), Base: base, Unfinished: now < m.inheritUntil,
	})
}

// credible returns what an owner says about moves, as far as it may be relied on. In what was forgotten, the state may
// have been lost that is said to have gone elsewhere, or have changed there.
func (m *Machine) credible(moves []protocol.MoveReport) []protocol.MoveReport {
	if m.doubted() {
		return nil
	}
	return moves
}

// surelyHeld reports whether a lease in a table that may be old is held, and was all along: its holder says so,
// and we have not granted it, since others may then have had the same generation.
func (m *Machine) surelyHeld(r leasehold.Range, e table.Entry) bool {
	p := m.sessions[e.Holder.Session]
	return p != nil && p.settled && e.Generation <= m.found.generation && slices.ContainsFunc(p.leases, func(l leasehold.Lease) bool {
		return l.Generation == e.Generation && l.Range.Covers(r)
	})
}

// rebased goes on from the renumbered table. If owners may have leases that it knows nothing of, that is waited for
// and it is renumbered again. Otherwise lookups hear that there is another table, and ask for it.
func (m *Machine) rebased(now mono.Instant, b *storage.Batch) {
	m.note(NoteRenumbered, "", uint64(b.Base.LSN()), uint64(b.Prev))
	m.table, m.snapshot = b.Base.Clone(), b.Base
	m.log = changelog.New(b.Base.LSN(), m.cfg.LogChanges, m.cfg.LogAge)
	m.unsaved = 0
	switch {
	case m.renumber != uint64(b.Base.LSN()): // somebody has reminded us of more
	case b.Unfinished:
		m.unmarked = false
		m.goOnAbove(0, m.clock(now))
	default:
		m.unmarked, m.renumber, m.found = false, 0, ending{b.Base.LSN(), b.Base.Newest()}
	}
	m.lookAgain()
	m.emit(Broadcast{&protocol.LookupReply{Namespace: m.cfg.Namespace, Leader: m.cfg.Self, Leads: true, Term: m.term, LSN: m.table.LSN()}})
}
