package memcatalog

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// leadership is what a leader knows about the others.
type leadership struct {
	term leasehold.Term
	// known is what others have said that they have; nil of one that is blank.
	// Only while the catalog is being found out.
	known map[storage.ManagerID]*storage.Catalog
	// waitUntil is until when owners may have leases that nobody remembers; 0 if
	// that is not feared.
	waitUntil mono.Instant

	catalog *storage.Catalog // that a majority is to have; nil while it is being found out
	kept    map[storage.ManagerID]bool
	process map[storage.ManagerID]uint64 // of those who have answered
	done    bool                         // a majority has it
	loading bool                         // the leader waits for it
	writing bool                         // whoever wanted it written waits for it

	sentAt mono.Instant // when all were last asked
	first  uint64       // what is answered with a lower number was asked before
}

// begin leads in a term. If we do already, and know the catalog, it says so.
func (m *Machine) begin(now mono.Instant, term leasehold.Term) {
	if m.lead == nil || m.lead.term != term {
		m.stepDown()
		m.heard = max(m.heard, term)
		m.lead = &leadership{
			term: term, known: map[storage.ManagerID]*storage.Catalog{m.cfg.Self: m.have},
			process: make(map[storage.ManagerID]uint64),
		}
		m.lead.loading = true
		m.askAll(now)
		m.decide(now)
		return
	}
	m.lead.loading = true
	m.settle()
}

// stepDown leads no more. What is being written some may keep, and the next leader
// may find it.
func (m *Machine) stepDown() {
	if m.lead != nil && m.lead.writing {
		m.emit(Written{Outcome: storage.Unknown})
	}
	m.lead = nil
}

// write has a catalog kept in place of the one in force.
func (m *Machine) write(now mono.Instant, e Write) {
	l := m.lead
	if l == nil || !l.done || l.catalog.Version != e.Prev {
		w := Written{Outcome: storage.Conflict}
		if l != nil && l.done {
			w.Catalog = l.catalog
		}
		m.emit(w)
		return
	}
	next := *e.Catalog
	l.writing = true
	m.propose(now, &next, e.Prev+1)
}

// propose sends a catalog to everyone.
func (m *Machine) propose(now mono.Instant, next *storage.Catalog, v storage.Version) {
	l := m.lead
	next.Term, next.Version = l.term, v
	l.catalog, l.done = next, false
	l.kept = map[storage.ManagerID]bool{m.cfg.Self: true}
	m.have = next
	m.askAll(now)
	m.settle()
}

// answered hears what another manager has.
func (m *Machine) answered(now mono.Instant, e Answered) {
	l, r := m.lead, e.Response
	if l == nil || r.Seq < l.first || r.Seq > m.seq || e.From == m.cfg.Self {
		return
	}
	m.heard = max(m.heard, r.Term)
	if r.Term > l.term {
		m.emit(Outranked{r.Term})
		return
	}
	met := l.process[e.From] != r.Process
	l.process[e.From] = r.Process
	if l.catalog == nil {
		if r.Known == (r.Catalog != nil) {
			l.known[e.From] = r.Catalog
			m.decide(now)
		}
		return
	}
	l.kept[e.From] = r.Known && r.Wrote == l.term && r.At == l.catalog.Version
	if met && !l.kept[e.From] {
		m.ask(e.From) // it was restarted: the sooner it knows, the sooner another may be
	}
	m.settle()
}

// decide takes the newest catalog that anyone knows, as soon as nobody can know
// of a newer one.
func (m *Machine) decide(now mono.Instant) {
	l := m.lead
	var newest *storage.Catalog
	informed := 0
	for _, c := range l.known {
		if c == nil {
			continue
		}
		informed++
		if newest == nil || newer(c, newest) {
			newest = c
		}
	}
	if !m.majority(informed) {
		if len(l.known) < len(m.cfg.Peers) {
			return
		}
		if l.waitUntil == 0 {
			l.waitUntil = now.Add(m.cfg.Longest)
			m.emit(Forgotten{m.cfg.Longest})
		}
		if now < l.waitUntil {
			return
		}
	}
	if newest == nil {
		newest = &storage.Catalog{}
	}
	next := *newest
	m.propose(now, &next, newest.Version+1)
}

// settle tells those who wait for it that a majority has the catalog.
func (m *Machine) settle() {
	l := m.lead
	if l.catalog == nil {
		return
	}
	kept := 0
	for _, has := range l.kept {
		if has {
			kept++
		}
	}
	l.done = l.done || m.majority(kept)
	if !l.done {
		return
	}
	if l.loading {
		l.loading = false
		m.emit(Loaded{l.catalog})
	}
	if l.writing {
		l.writing = false
		m.emit(Written{storage.Done, l.catalog})
	}
}

func (m *Machine) majority(n int) bool { return 2*n > len(m.cfg.Peers) }

// carryOn asks those again who have not answered, and now and then all of them. It
// returns when to do so next.
func (m *Machine) carryOn(now mono.Instant) mono.Instant {
	l := m.lead
	if l.catalog == nil && l.waitUntil != 0 && now >= l.waitUntil {
		m.decide(now)
	}
	every := m.cfg.Retry
	if l.done {
		every = m.cfg.Refresh
	}
	if now >= l.sentAt.Add(every) {
		m.askAll(now)
	}
	next := l.sentAt.Add(every)
	if l.catalog == nil && l.waitUntil != 0 {
		next = min(next, l.waitUntil)
	}
	return next
}

// askAll asks everyone else what they have, and sends the catalog to those of
// whom we do not know that they have it.
func (m *Machine) askAll(now mono.Instant) {
	l := m.lead
	l.sentAt = now
	if l.first == 0 {
		l.first = m.seq + 1
	}
	for _, id := range m.cfg.Peers {
		if id != m.cfg.Self {
			m.ask(id)
		}
	}
}

// ask asks another manager what it has.
func (m *Machine) ask(id storage.ManagerID) {
	l := m.lead
	m.seq++
	r := &Request{Term: l.term, Seq: m.seq, Full: l.catalog == nil, To: l.process[id]}
	if l.catalog != nil && !l.kept[id] {
		r.Catalog = l.catalog
	}
	m.emit(Ask{id, r})
}
