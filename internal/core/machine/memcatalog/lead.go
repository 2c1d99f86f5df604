package memcatalog

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// leadership is the state of a leader.
type leadership struct {
	term leasehold.Term
	// known has the catalogs in the responses of other managers; nil for a blank manager. Only used
	// until a catalog is selected.
	known map[storage.ManagerID]*storage.Catalog
	// expiry is when the last lease of an earlier leader has expired.
	expiry mono.Instant
	// waits: nothing but expiry is missing to select a catalog.
	waits bool

	catalog *storage.Catalog // to be replicated to a majority; nil until it is selected
	kept    map[storage.ManagerID]bool
	process map[storage.ManagerID]uint64 // of managers that have responded
	done    bool                         // committed: a majority has it
	loading bool                         // the shell waits for Loaded
	writing bool                         // the shell waits for Written

	sentAt mono.Instant // last broadcast
	first  uint64       // sequence number of the term's first request; lower ones are stale
}

// begin starts leading in a term. If this manager leads in it already, and the catalog is
// committed, begin emits Loaded. It does not lead in a term below one that it has received.
func (m *Machine) begin(now mono.Instant, term leasehold.Term) {
	if m.lead == nil || m.lead.term != term {
		m.stepDown()
		if term < m.maxTerm {
			m.emit(Outranked{m.maxTerm})
			return
		}
		m.maxTerm = term
		m.lead = &leadership{
			term: term, expiry: now.Add(m.cfg.Longest), known: map[storage.ManagerID]*storage.Catalog{m.cfg.Self: m.have},
			process: make(map[storage.ManagerID]uint64),
		}
		m.lead.loading = true
		m.broadcast(now)
		m.decide(now)
		return
	}
	m.lead.loading = true
	m.reportCommit()
}

// stepDown stops leading. A write in progress may be on some managers, where the next leader may
// find it.
func (m *Machine) stepDown() {
	if m.lead != nil && m.lead.writing {
		m.emit(Written{Outcome: storage.Unknown})
	}
	m.lead = nil
}

// write replicates a catalog that replaces the current one.
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

// propose sends a catalog to all managers.
func (m *Machine) propose(now mono.Instant, next *storage.Catalog, v storage.Version) {
	l := m.lead
	next.Term, next.Version = l.term, v
	l.catalog, l.done = next, false
	l.kept = map[storage.ManagerID]bool{m.cfg.Self: true}
	m.have = next
	m.broadcast(now)
	m.reportCommit()
}

// handleResponse handles another manager's response.
func (m *Machine) handleResponse(now mono.Instant, e Answered) {
	l, r := m.lead, e.Response
	if l == nil || r.Seq < l.first || r.Seq > m.seq || e.From == m.cfg.Self {
		return
	}
	m.maxTerm = max(m.maxTerm, r.Term)
	if r.Term > l.term {
		m.emit(Outranked{r.Term})
		return
	}
	restarted := l.process[e.From] != r.Process
	l.process[e.From] = r.Process
	if l.catalog == nil {
		if r.Known == (r.Catalog != nil) {
			l.known[e.From] = r.Catalog
			m.decide(now)
		}
		return
	}
	l.kept[e.From] = r.Known && r.Wrote == l.term && r.At == l.catalog.Version
	if restarted && !l.kept[e.From] {
		m.sendRequest(e.From) // restarted: it is blank until it has the catalog, so send it at once
	}
	m.reportCommit()
}

// decide selects the newest known catalog, as soon as no newer one can have been committed, or the
// rest is lost.
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
	if !m.majority(informed) && !m.replaces(now) {
		return
	}
	if newest == nil {
		newest = &storage.Catalog{}
	}
	next := *newest
	m.propose(now, &next, newest.Version+1)
}

// replaces reports whether the leader may use a catalog that may not be the newest. It emits
// Forgotten as soon as nothing but the expiry of leases is missing.
func (m *Machine) replaces(now mono.Instant) bool {
	l := m.lead
	all := len(l.known) == len(m.cfg.Peers)
	if !all && (!m.cfg.Rebuild || now < m.disputed || !m.majority(len(l.known))) {
		return false
	}
	wait := max(0, l.expiry.Sub(now))
	if wait == 0 || !l.waits {
		l.waits = true
		m.emit(Forgotten{wait})
	}
	return wait == 0
}

// reportCommit emits Loaded and Written if a majority has the catalog.
func (m *Machine) reportCommit() {
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

// retransmit sends periodic requests: retries until the catalog is committed, then refreshes. It
// returns the next wake time.
func (m *Machine) retransmit(now mono.Instant) mono.Instant {
	l := m.lead
	ready := max(l.expiry, m.disputed)
	if l.catalog == nil && l.waits && now >= ready {
		m.decide(now)
	}
	every := m.cfg.Retry
	if l.done {
		every = m.cfg.Refresh
	}
	if now >= l.sentAt.Add(every) {
		m.broadcast(now)
	}
	next := l.sentAt.Add(every)
	if l.catalog == nil && l.waits {
		next = min(next, ready)
	}
	return next
}

// broadcast sends a request to all other managers. It includes the catalog for those that have not
// confirmed it.
func (m *Machine) broadcast(now mono.Instant) {
	l := m.lead
	l.sentAt = now
	if l.first == 0 {
		l.first = m.seq + 1
	}
	for _, id := range m.cfg.Peers {
		if id != m.cfg.Self {
			m.sendRequest(id)
		}
	}
}

// sendRequest sends a request to one manager.
func (m *Machine) sendRequest(id storage.ManagerID) {
	l := m.lead
	m.seq++
	r := &Request{Term: l.term, Seq: m.seq, Full: l.catalog == nil, To: l.process[id]}
	if l.catalog != nil && !l.kept[id] {
		r.Catalog = l.catalog
	}
	m.emit(Ask{id, r})
}
