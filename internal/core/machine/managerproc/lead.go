package managerproc

import (
	"maps"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/bylease"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// namespace is one that we lead, or are about to.
type namespace struct {
	entry   storage.Namespace
	cfg     manager.Config
	machine *manager.Machine // nil until its table is loaded
	census  *manager.Census  // how its table is found out; nil if it is not
	wake    mono.Instant     // the machine's, the census's, or when to load
	parked  error            // why it cannot be led
	fresh   bool             // it was created in this term: nobody can have anything of it
	// committing: the machine has a batch under way.
	committing bool
	// settleAt is when nobody believes in an earlier configuration any more.
	settleAt mono.Instant
}

func (n *namespace) name() leasehold.Namespace { return n.entry.Name }

func (m *Machine) find(ns leasehold.Namespace) *namespace {
	if i, ok := search(m.led, (*namespace).name, ns); ok {
		return m.led[i]
	}
	return nil
}

// elect steps the election; a nil event is the passing of time.
func (m *Machine) elect(now mono.Instant, e byrecord.Event) {
	var actions []byrecord.Action
	if e == nil {
		actions, m.wake = m.election.Advance(now)
	} else {
		actions, m.wake = m.election.Step(now, e)
	}
	m.follow(now, actions)
}

// appoint hears what has become of the lease by which we may lead.
func (m *Machine) appoint(now mono.Instant, e bylease.Event) {
	if m.appointment == nil {
		return
	}
	var actions []byrecord.Action
	actions, m.wake = m.appointment.Hear(now, e)
	m.follow(now, actions)
}

// follow does what follows from whether we lead.
func (m *Machine) follow(now mono.Instant, actions []byrecord.Action) {
	for _, a := range actions {
		switch a := a.(type) {
		case byrecord.Lead:
			m.takeOver(a)
		case byrecord.Extend:
			m.until = a.Until
			for _, n := range m.led {
				switch {
				case n.machine != nil:
					m.manage(now, n, manager.Authority{Until: a.Until})
				case n.census != nil:
					m.survey(now, n, manager.Authority{Until: a.Until})
				}
			}
		case byrecord.StepDown:
			m.stepDown()
		}
		m.emit(Elect{a})
	}
}

func (m *Machine) takeOver(l byrecord.Lead) {
	m.stepDown()
	m.relays = nil
	m.term, m.until = l.Term, l.Until
	m.mandate = l
	m.readCatalog()
}

func (m *Machine) stepDown() {
	for _, n := range m.led {
		n.machine, n.census, n.wake, n.settleAt = nil, nil, mono.Never, mono.Never // whoever walks the list finds it ended
	}
	m.term = 0
	m.catalog, m.catalogAt, m.catalogDoubt = nil, mono.Never, false
	m.led, m.retired, m.past = nil, nil, nil
}

func (m *Machine) readCatalog() {
	m.catalogAt = mono.Never
	m.emit(LoadCatalog{m.term})
}

// current reports whether what was read in a term, when the leader record had
// the term stored, can be used. If not, it is read again, or we are deposed.
func (m *Machine) current(now mono.Instant, stored leasehold.Term) bool {
	if stored > m.term {
		m.elect(now, byrecord.Deposed{By: stored})
	}
	return stored == m.term
}

// A write of the catalog whose outcome is unknown may take effect after the catalog was read
// again. For the rest of its term the leader reads the catalog at this multiple of Config.Retry.
const doubtRetries = 50

// catalogued makes the namespaces that we lead those of the catalog.
func (m *Machine) catalogued(now mono.Instant, e Catalogued) {
	if m.term == 0 || e.Term != m.term {
		return
	}
	if e.Catalog == nil || !m.current(now, e.Catalog.Term) {
		if m.term != 0 {
			m.catalogAt, m.catalogDoubt = now.Add(m.cfg.Retry), true
		}
		return
	}
	if m.catalogDoubt && m.appointment == nil {
		m.catalogAt = now.Add(doubtRetries * m.cfg.Retry)
	}
	if m.catalog != nil && e.Catalog.Version <= m.catalog.Version {
		return
	}
	fresh := m.catalog != nil // what is new in it
	m.catalog = e.Catalog
	m.led = slices.DeleteFunc(m.led, func(n *namespace) bool {
		gone := e.Catalog.Entry(n.name()) == nil
		if gone {
			m.retire(n)
		}
		return gone
	})
	for _, entry := range e.Catalog.Namespaces {
		if m.term == 0 {
			return // a namespace has found out that we no longer lead
		}
		if n := m.find(entry.Name); n == nil {
			m.add(entry, fresh)
		} else if !entry.Equal(n.entry) {
			m.reconfigure(now, n, entry)
		}
	}
}

// add starts to lead a namespace.
func (m *Machine) add(entry storage.Namespace, fresh bool) {
	n := &namespace{entry: entry, fresh: fresh, wake: mono.Never, settleAt: mono.Never}
	i, _ := search(m.led, (*namespace).name, entry.Name)
	m.led = slices.Insert(m.led, i, n)
	if m.configure(n, entry) {
		m.load(n)
	}
}

// configure works out what the namespace's machine is to be told, and reports
// whether it can be told anything.
func (m *Machine) configure(n *namespace, entry storage.Namespace) bool {
	cfg, err := m.cfg.Configure(entry)
	if err == nil {
		cfg.Namespace, cfg.Self, cfg.Promised = entry.Name, m.cfg.self(), entry.Promised
		cfg.Volatile, cfg.Deleted = m.appointment != nil, entry.Deleted
		if cfg.Rand == nil {
			cfg.Rand = m.newRand()
		}
		err = cfg.Check()
	}
	if err != nil {
		m.park(n, err)
		return false
	}
	n.cfg = cfg
	return true
}

// park gives up on a namespace until its configuration changes or someone else
// leads.
func (m *Machine) park(n *namespace, why error) {
	m.retire(n)
	n.parked, n.wake, n.settleAt = why, mono.Never, mono.Never
	m.emit(Parked{n.name(), why})
}

// reconfigure goes on with another configuration.
func (m *Machine) reconfigure(now mono.Instant, n *namespace, entry storage.Namespace) {
	n.entry = entry
	wasParked := n.parked != nil
	if !m.configure(n, entry) {
		return
	}
	n.parked = nil
	m.awaitSettling(now, n)
	switch {
	case n.machine != nil:
		m.manage(now, n, manager.Reconfigured{Config: n.cfg})
	case n.census != nil:
		m.dismissCensus(n) // what it promised may have changed
		m.load(n)
	case wasParked:
		m.load(n)
	}
}

// awaitSettling sets the time at which what an earlier configuration promised
// is over: counted from when we began to tell owners otherwise.
func (m *Machine) awaitSettling(now mono.Instant, n *namespace) {
	n.settleAt = mono.Never
	if n.entry.Promised > 0 && !n.entry.Deleted {
		n.settleAt = now.Add(n.entry.Promised)
	}
}

// load reads the namespace's table, as soon as nobody can change it but us.
func (m *Machine) load(n *namespace) {
	n.wake = mono.Never
	if m.findRetired(n.name()) == nil {
		m.emit(Load{n.name(), m.term})
	}
}

// loaded starts to lead a namespace.
func (m *Machine) loaded(now mono.Instant, e Loaded) {
	n := m.find(e.Namespace)
	if n == nil || m.term == 0 || e.Term != m.term || n.machine != nil || n.census != nil || n.parked != nil {
		return
	}
	if m.findRetired(e.Namespace) != nil {
		return // it was read too early, and will be read again
	}
	past := m.past[e.Namespace]
	if e.State == nil || !m.current(now, e.State.Term) || e.State.End() < past.lsn {
		n.wake = now.Add(m.cfg.Retry) // no answer, or one from before we led it
		return
	}
	n.cfg.Takeover = manager.Takeover{
		FirstSeq: past.seq, Floor: m.mandate.Floor, LostBelow: m.mandate.LostBelow, Clock: m.mandate.Clock, Uncertain: m.mandate.Uncertain,
	}
	if e.State.Unknown {
		m.beginCensus(now, n)
	} else {
		m.inherit(now, n, e.State)
	}
	if n.parked == nil && !n.entry.Deleted {
		m.emit(Serves{n.name(), m.term})
	}
}

// inherit leads a namespace from the table on that its last leader has left.
func (m *Machine) inherit(now mono.Instant, n *namespace, state *storage.State) {
	machine, err := manager.New(now, n.cfg, m.term, m.until, state)
	if err != nil {
		m.park(n, err)
		return
	}
	m.lead(now, n, machine)
}

// lead starts to lead a namespace whose table is known.
func (m *Machine) lead(now mono.Instant, n *namespace, machine *manager.Machine) {
	n.machine, n.wake = machine, now
	m.awaitSettling(now, n)
}

// request is an owner's message.
func (m *Machine) request(now mono.Instant, r Request) {
	if r.Holder == nil {
		return
	}
	n := m.find(r.Namespace)
	switch {
	case m.unknown(now, n):
		m.emit(RefuseOwner{r.Speaker(), m.unknownTo(now, n, r)})
	case n != nil && n.machine != nil:
		m.manage(now, n, manager.Request{LeaseRequest: r.LeaseRequest})
	case n != nil && n.census != nil:
		m.survey(now, n, manager.Request{LeaseRequest: r.LeaseRequest})
	case n != nil && n.parked != nil:
		m.emit(RefuseOwner{r.Speaker(), n.parked})
	default:
		m.emit(RedirectOwner{r.Speaker(), m.notLeader()})
	}
}

// unknown reports whether we know, as the leader, that a namespace is not to be
// served.
func (m *Machine) unknown(now mono.Instant, n *namespace) bool {
	return m.catalog != nil && m.Leads(now) && (n == nil || n.entry.Deleted)
}

// unknownTo tells an owner that there is no such namespace. One that holds leases in it had
// other managers, or these with another store: then to create the namespace would be wrong.
func (m *Machine) unknownTo(now mono.Instant, n *namespace, r Request) error {
	if n != nil || len(r.Leases) == 0 || m.appointment != nil {
		return noSuchNamespace(r.Namespace)
	}
	m.claim(now, r)
	return leasehold.Errorf("find namespace", leasehold.ErrNotFound, string(r.Namespace),
		"there is no such namespace, although this owner holds leases in it: it was deleted, or the managers run with another data directory or store than before")
}

// A claim is an owner holding leases in a namespace that there is not.
type claim struct {
	at    mono.Instant
	owner leasehold.OwnerID
}

// ClaimAge is for how long a claim is remembered: an owner that is refused asks every few seconds.
const ClaimAge = 30 * time.Second

const maxClaims = 4096 // of how many namespaces claims are remembered

// claim remembers a claim. If there are too many, those that are out of date are removed, and if
// there are still too many, the oldest.
func (m *Machine) claim(now mono.Instant, r Request) {
	if m.claims == nil {
		m.claims = make(map[leasehold.Namespace]claim)
	}
	if _, known := m.claims[r.Namespace]; !known && len(m.claims) >= maxClaims {
		maps.DeleteFunc(m.claims, func(_ leasehold.Namespace, c claim) bool { return now.Sub(c.at) >= ClaimAge })
	}
	if _, known := m.claims[r.Namespace]; !known && len(m.claims) >= maxClaims {
		oldest := r.Namespace
		for name, c := range m.claims {
			if o, set := m.claims[oldest]; !set || c.at < o.at || c.at == o.at && name < oldest {
				oldest = name
			}
		}
		delete(m.claims, oldest)
	}
	m.claims[r.Namespace] = claim{now, r.Holder.Owner}
}

// Claimed returns an owner that has just claimed leases in a namespace that there is not; "" if
// none has.
func (m *Machine) Claimed(now mono.Instant, ns leasehold.Namespace) leasehold.OwnerID {
	if c, there := m.claims[ns]; there && now.Sub(c.at) < ClaimAge {
		return c.owner
	}
	return ""
}

func noSuchNamespace(ns leasehold.Namespace) error {
	return leasehold.Errorf("find namespace", leasehold.ErrNotFound, string(ns),
		"there is no such namespace; create it with: leasehold namespace create %s", ns)
}

// managed is something that happens to a namespace's machine.
func (m *Machine) managed(now mono.Instant, e Manager) {
	if m.term == 0 || e.Term != m.term {
		return
	}
	if r := m.findRetired(e.Namespace); r != nil {
		m.conclude(now, r, e.Event)
	} else if n := m.find(e.Namespace); n != nil && n.machine != nil {
		m.manage(now, n, e.Event)
	}
}

// manage steps a namespace's machine; a nil event is the passing of time.
func (m *Machine) manage(now mono.Instant, n *namespace, e manager.Event) {
	var actions []manager.Action
	if e == nil {
		actions, n.wake = n.machine.Advance(now)
	} else {
		actions, n.wake = n.machine.Step(now, e)
	}
	for _, a := range actions {
		m.emit(Manage{n.name(), m.term, a})
		switch a := a.(type) {
		case manager.Commit:
			n.committing = true
		case manager.Broadcast:
			n.committing = false
		case manager.Outranked:
			m.elect(now, byrecord.Outranked{By: a.By})
		case manager.Deposed:
			m.elect(now, byrecord.Deposed{By: a.By})
			return
		case manager.Spent:
			m.elect(now, byrecord.Deposed{By: m.term + 1})
			return
		}
	}
	if n.entry.Deleted && n.settleAt == mono.Never && n.machine != nil && n.machine.Empty() {
		n.settleAt = now
	}
}
