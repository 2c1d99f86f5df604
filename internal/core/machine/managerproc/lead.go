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
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// namespace is a namespace of the catalog on the leader.
type namespace struct {
	entry   storage.Namespace
	cfg     manager.Config
	machine *manager.Machine // nil until its table is loaded
	census  *manager.Census  // collects its table from the owners; nil if there is no census
	wake    mono.Instant     // of the machine or the census, or when to load
	parked  error            // why it cannot be led
	fresh   bool             // it was created in this term, so no owner has a lease in it
	// committing: the machine has a commit in flight.
	committing bool
	// settleAt is when all leases of an earlier configuration have expired.
	settleAt mono.Instant
}

func (n *namespace) name() leasehold.Namespace { return n.entry.Name }

func (m *Machine) find(ns leasehold.Namespace) *namespace {
	if i, ok := search(m.led, (*namespace).name, ns); ok {
		return m.led[i]
	}
	return nil
}

// elect steps the election; a nil event means Advance.
func (m *Machine) elect(now mono.Instant, e byrecord.Event) {
	var actions []byrecord.Action
	if e == nil {
		actions, m.wake = m.election.Advance(now)
	} else {
		actions, m.wake = m.election.Step(now, e)
	}
	m.applyElection(now, actions)
}

// stepAppointment handles an event of the lease by which this manager may lead.
func (m *Machine) stepAppointment(now mono.Instant, e bylease.Event) {
	if m.appointment == nil {
		return
	}
	var actions []byrecord.Action
	actions, m.wake = m.appointment.StepLease(now, e)
	m.applyElection(now, actions)
}

// applyElection applies the actions of the election.
func (m *Machine) applyElection(now mono.Instant, actions []byrecord.Action) {
	for _, a := range actions {
		switch a := a.(type) {
		case byrecord.Lead:
			m.takeOver(a)
		case byrecord.Extend:
			m.until = a.Until
			for _, n := range m.led {
				switch {
				case n.machine != nil:
					m.stepManager(now, n, manager.Authority{Until: a.Until})
				case n.census != nil:
					m.stepCensus(now, n, manager.Authority{Until: a.Until})
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
		n.machine, n.census, n.wake, n.settleAt = nil, nil, mono.Never, mono.Never // for loops that are still iterating over the list
	}
	m.term, m.lostFloor = 0, 0
	m.catalog, m.catalogAt, m.catalogDoubt = nil, mono.Never, false
	m.led, m.retired, m.past = nil, nil, nil
}

func (m *Machine) readCatalog() {
	m.catalogAt = mono.Never
	m.emit(LoadCatalog{m.term})
}

// current reports whether a read in this term is valid, given the term of the leader record at the
// read. Otherwise it is read again, or this leader is deposed.
func (m *Machine) current(now mono.Instant, stored leasehold.Term) bool {
	if stored > m.term {
		m.elect(now, byrecord.Deposed{By: stored})
	}
	return stored == m.term
}

// doubtRetries is the interval, in multiples of Config.Retry, at which the leader reads the catalog
// again for the rest of its term. Reason: a write of the catalog with an unknown outcome may take
// effect after the catalog was read again.
const doubtRetries = 50

// handleCatalog applies the catalog to the list of namespaces.
func (m *Machine) handleCatalog(now mono.Instant, e Catalogued) {
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
	fresh := m.catalog != nil // new entries were created in this term
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
			return // a namespace has found a later leader
		}
		if n := m.find(entry.Name); n == nil {
			m.add(entry, fresh)
		} else if !entry.Equal(n.entry) {
			m.reconfigure(now, n, entry)
		}
	}
}

// add adds a namespace.
func (m *Machine) add(entry storage.Namespace, fresh bool) {
	n := &namespace{entry: entry, fresh: fresh, wake: mono.Never, settleAt: mono.Never}
	i, _ := search(m.led, (*namespace).name, entry.Name)
	m.led = slices.Insert(m.led, i, n)
	if m.configure(n, entry) {
		m.load(n)
	}
}

// configure sets the configuration of the namespace's machine, and reports whether it is valid.
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

// park stops leading a namespace until its configuration or the leader changes.
func (m *Machine) park(n *namespace, why error) {
	m.retire(n)
	n.parked, n.wake, n.settleAt = why, mono.Never, mono.Never
	m.emit(Parked{n.name(), why})
}

// reconfigure applies a new configuration.
func (m *Machine) reconfigure(now mono.Instant, n *namespace, entry storage.Namespace) {
	n.entry = entry
	wasParked := n.parked != nil
	if !m.configure(n, entry) {
		return
	}
	n.parked = nil
	m.scheduleSettle(now, n)
	switch {
	case n.machine != nil:
		m.stepManager(now, n, manager.Reconfigured{Config: n.cfg})
	case n.census != nil:
		m.endCensus(n) // the wait may have changed
		m.load(n)
	case wasParked:
		m.load(n)
	}
}

// scheduleSettle sets the time at which all leases of an earlier configuration have expired, counted
// from the first reply with the new one.
func (m *Machine) scheduleSettle(now mono.Instant, n *namespace) {
	n.settleAt = mono.Never
	if n.entry.Promised > 0 && !n.entry.Deleted {
		n.settleAt = now.Add(n.entry.Promised)
	}
}

// load reads the namespace's table, as soon as no commit of a retired machine is in flight.
func (m *Machine) load(n *namespace) {
	n.wake = mono.Never
	if m.findRetired(n.name()) == nil {
		m.emit(Load{n.name(), m.term})
	}
}

// handleLoaded starts the machine or census of a namespace.
func (m *Machine) handleLoaded(now mono.Instant, e Loaded) {
	n := m.find(e.Namespace)
	if n == nil || m.term == 0 || e.Term != m.term || n.machine != nil || n.census != nil || n.parked != nil {
		return
	}
	if m.findRetired(e.Namespace) != nil {
		return // it was read too early, and will be read again
	}
	past := m.past[e.Namespace]
	if e.State == nil || !m.current(now, e.State.Term) || e.State.End() < past.lsn {
		n.wake = now.Add(m.cfg.Retry) // no reply, or one from before the takeover
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

// inherit starts a namespace's machine from the stored table.
func (m *Machine) inherit(now mono.Instant, n *namespace, state *storage.State) {
	machine, err := manager.New(now, n.cfg, m.term, m.until, state)
	if err != nil {
		m.park(n, err)
		return
	}
	m.lead(now, n, machine)
}

// lead starts a namespace's machine.
func (m *Machine) lead(now mono.Instant, n *namespace, machine *manager.Machine) {
	n.machine, n.wake = machine, now
	m.scheduleSettle(now, n)
	if m.lostFloor != 0 {
		m.stepManager(now, n, manager.Floor{Number: m.lostFloor})
	}
}

// handleRequest handles a request of an owner.
func (m *Machine) handleRequest(now mono.Instant, r Request) {
	if r.Holder == nil {
		return
	}
	n := m.find(r.Namespace)
	switch {
	case m.unknown(now, n):
		m.emit(RefuseOwner{r.Speaker(), m.refusalOf(now, n, r)})
	case n != nil && n.machine != nil:
		m.stepManager(now, n, manager.Request{LeaseRequest: r.LeaseRequest})
	case n != nil && n.census != nil:
		m.stepCensus(now, n, manager.Request{LeaseRequest: r.LeaseRequest})
	case n != nil && n.parked != nil:
		m.emit(RefuseOwner{r.Speaker(), n.parked})
	default:
		m.emit(RedirectOwner{r.Speaker(), m.notLeader()})
	}
}

// handleDeath handles the proof that a session's process has ended. Without a machine, as during a census, the
// caller repeats it: the session may be in the table that results.
func (m *Machine) handleDeath(now mono.Instant, e Died) {
	n := m.find(e.Namespace)
	switch {
	case n != nil && n.machine != nil:
		m.stepManager(now, n, manager.Died{ID: e.ID, DeathNotice: e.DeathNotice})
	case n != nil:
		m.emit(DeathReply{e.ID, protocol.DeathUndecided})
	case m.unknown(now, n):
		m.emit(DeathReply{e.ID, protocol.DeathUnknown})
	default:
		m.emit(RedirectDeath{e.ID, m.notLeader()})
	}
}

// unknown reports whether this manager has the authority to reject a namespace as nonexistent.
func (m *Machine) unknown(now mono.Instant, n *namespace) bool {
	return m.catalog != nil && m.Leads(now) && (n == nil || n.entry.Deleted)
}

// refusalOf returns the reason of a refusal. If the owner holds leases in the nonexistent
// namespace, it had other managers, or these with another store. Then creating the namespace would
// be wrong.
func (m *Machine) refusalOf(now mono.Instant, n *namespace, r Request) error {
	if n != nil || len(r.Leases) == 0 || m.appointment != nil {
		return noSuchNamespace(r.Namespace)
	}
	m.claim(now, r)
	return leasehold.Errorf("find namespace", leasehold.ErrNotFound, string(r.Namespace),
		"there is no such namespace, although this owner holds leases in it: it was deleted, or the managers run with another data directory or store than before")
}

// A claim is a request of an owner with leases in a nonexistent namespace.
type claim struct {
	at    mono.Instant
	owner leasehold.OwnerID
}

// ClaimAge is how long a claim is kept: a refused owner retries every few seconds.
const ClaimAge = 30 * time.Second

const maxClaims = 4096 // limit of namespaces with a claim

// claim records a claim. At the limit it removes the expired claims, or else the oldest.
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

// Claimed returns an owner that has recently claimed leases in a nonexistent namespace; "" if there
// is none.
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

// handleManager handles an event of a namespace's machine.
func (m *Machine) handleManager(now mono.Instant, e Manager) {
	if m.term == 0 || e.Term != m.term {
		return
	}
	if r := m.findRetired(e.Namespace); r != nil {
		m.stepRetired(now, r, e.Event)
	} else if n := m.find(e.Namespace); n != nil && n.machine != nil {
		m.stepManager(now, n, e.Event)
	}
}

// stepManager steps a namespace's machine; a nil event means Advance.
func (m *Machine) stepManager(now mono.Instant, n *namespace, e manager.Event) {
	var actions []manager.Action
	if e == nil {
		actions, n.wake = n.machine.Advance(now)
	} else {
		actions, n.wake = n.machine.Step(now, e)
	}
	var lost manager.HistoryLost
	for _, a := range actions {
		switch a := a.(type) {
		case manager.DeathReply:
			m.emit(DeathReply(a))
			continue
		case manager.HistoryLost:
			lost = a
			continue
		}
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
	if lost.Newest != 0 {
		m.raiseFloor(now, lost.Newest)
	}
}

// raiseFloor makes the namespaces whose gap is not stored continue above a number that the lost history has assigned in
// one of them.
func (m *Machine) raiseFloor(now mono.Instant, newest uint64) {
	floor := storage.FloorOfOthers(newest, m.mandate.Clock)
	if floor <= m.lostFloor {
		return
	}
	m.lostFloor = floor
	for _, n := range m.led {
		if n.machine != nil {
			m.stepManager(now, n, manager.Floor{Number: floor})
		}
	}
}
