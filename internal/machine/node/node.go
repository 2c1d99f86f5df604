// Package node is the machine of one manager process: its part in the
// election, and while it leads, one manager machine for each namespace.
//
// # DESIGN
//
// Leadership is won once for all namespaces, and then each loads its table and
// leads on its own. They share nothing but the term and the authority, so that
// what happens in one cannot change another; a namespace whose table cannot be
// read is tried again, and the others do not wait for it.
//
// Answers of the store are marked with the term that asked, because a process
// may lose leadership and win it again while an answer is under way.
package node

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/machine/election"
	"github.com/leasehold-dev/leasehold/internal/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/mono"
	"github.com/leasehold-dev/leasehold/internal/protocol"
	"github.com/leasehold-dev/leasehold/internal/storage"
)

// An Event is something that happens to a manager process.
type Event interface{ nodeEvent() }

type (
	// Request is a message from an owner.
	Request struct{ *protocol.LeaseRequest }
	// Lookup is a message from a lookup.
	Lookup struct{ *protocol.LookupRequest }
	// Election is something that happens to our candidacy.
	Election struct{ election.Event }
	// Manager is something that happens to a namespace that we lead. It is
	// dropped if we lead in another term by now.
	Manager struct {
		Namespace leasehold.Namespace
		Term      leasehold.Term
		manager.Event
	}
	// Loaded answers [Load]. State is nil if the store did not answer.
	Loaded struct {
		Namespace leasehold.Namespace
		Term      leasehold.Term
		State     *storage.State
	}
)

func (Request) nodeEvent()  {}
func (Lookup) nodeEvent()   {}
func (Election) nodeEvent() {}
func (Manager) nodeEvent()  {}
func (Loaded) nodeEvent()   {}

// An Action is something that the shell must do. Actions are done in order.
type Action interface{ nodeAction() }

type (
	// Elect is an action of the election.
	Elect struct{ election.Action }
	// Manage is an action of a namespace; its answer must carry the term.
	Manage struct {
		Namespace leasehold.Namespace
		Term      leasehold.Term
		manager.Action
	}
	// Load reads all that is stored about a namespace, linearizably; the shell
	// answers with [Loaded].
	Load struct {
		Namespace leasehold.Namespace
		Term      leasehold.Term
	}
	// RedirectOwner tells an owner that we do not lead.
	RedirectOwner struct {
		Session leasehold.Session
		protocol.NotLeader
	}
	// RedirectLookup tells a lookup that we do not lead.
	RedirectLookup struct {
		Lookup uint64
		protocol.NotLeader
	}
)

func (Elect) nodeAction()          {}
func (Manage) nodeAction()         {}
func (Load) nodeAction()           {}
func (RedirectOwner) nodeAction()  {}
func (RedirectLookup) nodeAction() {}

// Config is what a manager process is told when it starts.
type Config struct {
	Election   election.Config
	Namespaces []manager.Config // sorted or not; names are unique
	// Retry is how long to wait before reading a table again. Default 200 ms.
	Retry time.Duration
}

// A Machine is one manager process. It is not safe for concurrent use. The
// actions that Step and Advance return are valid until the next call.
type Machine struct {
	cfg      Config
	out      []Action
	election *election.Machine
	wake     mono.Instant // the election's

	term  leasehold.Term // 0 while we do not lead
	until mono.Instant
	led   []namespace // sorted by name
}

// namespace is one that we lead, or are about to.
type namespace struct {
	cfg     manager.Config
	machine *manager.Machine // nil until its table is loaded
	wake    mono.Instant
}

// New returns a manager process that does not lead yet.
func New(now mono.Instant, cfg Config) (*Machine, error) {
	e, err := election.New(now, cfg.Election)
	if err != nil {
		return nil, err
	}
	if cfg.Retry == 0 {
		cfg.Retry = 200 * time.Millisecond
	}
	m := &Machine{cfg: cfg, election: e, wake: now}
	for _, ns := range cfg.Namespaces {
		// A trial run finds what is wrong with a configuration now, and not at
		// the first takeover.
		if _, err := manager.New(now, ns, 1, now, &storage.State{}); err != nil {
			return nil, err
		}
		m.led = append(m.led, namespace{cfg: ns, wake: mono.Never})
	}
	slices.SortFunc(m.led, func(a, b namespace) int { return compare(a.cfg.Namespace, b.cfg.Namespace) })
	for i := 1; i < len(m.led); i++ {
		if m.led[i].cfg.Namespace == m.led[i-1].cfg.Namespace {
			return nil, leasehold.Errorf("manager", leasehold.Invalid, string(m.led[i].cfg.Namespace), "namespace is there twice")
		}
	}
	return m, nil
}

func compare(a, b leasehold.Namespace) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Manager returns the machine that leads a namespace, nil if we do not.
func (m *Machine) Manager(ns leasehold.Namespace) *manager.Machine {
	if n := m.find(ns); n != nil {
		return n.machine
	}
	return nil
}

// Leads reports whether we act as leader at now.
func (m *Machine) Leads(now mono.Instant) bool { return m.election.Leads(now) }

// Step handles an event that happened at now, and all time that has passed.
// It returns what to do, in order, and when to call Advance at the latest.
func (m *Machine) Step(now mono.Instant, e Event) ([]Action, mono.Instant) {
	m.out = m.out[:0]
	switch e := e.(type) {
	case Request:
		if n := m.serving(e.Namespace); n != nil {
			m.manage(now, n, manager.Request{LeaseRequest: e.LeaseRequest})
		} else if e.Holder != nil {
			m.out = append(m.out, RedirectOwner{e.Holder.Session, m.notLeader()})
		}
	case Lookup:
		if n := m.serving(e.Namespace); n != nil {
			m.manage(now, n, manager.Lookup{LookupRequest: e.LookupRequest})
		} else {
			m.out = append(m.out, RedirectLookup{e.Lookup, m.notLeader()})
		}
	case Election:
		m.elect(now, e.Event)
	case Manager:
		if n := m.find(e.Namespace); n != nil && n.machine != nil && e.Term == m.term {
			m.manage(now, n, e.Event)
		}
	case Loaded:
		m.loaded(now, e)
	}
	return m.finish(now)
}

// Advance handles the passing of time.
func (m *Machine) Advance(now mono.Instant) ([]Action, mono.Instant) {
	m.out = m.out[:0]
	return m.finish(now)
}

func (m *Machine) finish(now mono.Instant) ([]Action, mono.Instant) {
	if now >= m.wake {
		m.elect(now, nil)
	}
	wake := m.wake
	for i := range m.led {
		n := &m.led[i]
		if now >= n.wake {
			if n.machine != nil {
				m.manage(now, n, nil)
			} else {
				m.load(n)
			}
		}
		wake = min(wake, n.wake)
	}
	return m.out, wake
}

func (m *Machine) find(ns leasehold.Namespace) *namespace {
	i, ok := slices.BinarySearchFunc(m.led, ns, func(n namespace, ns leasehold.Namespace) int { return compare(n.cfg.Namespace, ns) })
	if !ok {
		return nil
	}
	return &m.led[i]
}

// serving returns the namespace if we lead it and its table is loaded.
func (m *Machine) serving(ns leasehold.Namespace) *namespace {
	if n := m.find(ns); n != nil && n.machine != nil {
		return n
	}
	return nil
}

func (m *Machine) notLeader() protocol.NotLeader {
	leader, term := m.election.Leader()
	if leader == m.cfg.Election.Self {
		leader = "" // ours, from before we were started, or not loaded yet
	}
	return protocol.NotLeader{Term: term, Leader: leader}
}

// elect steps the election; a nil event is the passing of time.
func (m *Machine) elect(now mono.Instant, e election.Event) {
	var actions []election.Action
	if e == nil {
		actions, m.wake = m.election.Advance(now)
	} else {
		actions, m.wake = m.election.Step(now, e)
	}
	for _, a := range actions {
		switch a := a.(type) {
		case election.Lead:
			m.takeOver(a)
		case election.Extend:
			m.until = a.Until
			for i := range m.led {
				if m.led[i].machine != nil {
					m.manage(now, &m.led[i], manager.Authority{Until: a.Until})
				}
			}
		case election.StepDown:
			m.stepDown()
		}
		m.out = append(m.out, Elect{a})
	}
}

func (m *Machine) takeOver(l election.Lead) {
	m.stepDown()
	m.term, m.until = l.Term, l.Until
	for i := range m.led {
		m.load(&m.led[i])
	}
}

func (m *Machine) load(n *namespace) {
	n.wake = mono.Never
	m.out = append(m.out, Load{n.cfg.Namespace, m.term})
}

func (m *Machine) stepDown() {
	m.term = 0
	for i := range m.led {
		m.led[i].machine, m.led[i].wake = nil, mono.Never
	}
}

// loaded starts to lead a namespace.
func (m *Machine) loaded(now mono.Instant, e Loaded) {
	n := m.find(e.Namespace)
	if n == nil || m.term == 0 || e.Term != m.term || n.machine != nil {
		return
	}
	if e.State == nil || e.State.Term < m.term {
		n.wake = now.Add(m.cfg.Retry) // no answer, or one from before we were elected
		return
	}
	if e.State.Term > m.term {
		m.elect(now, election.Deposed{By: e.State.Term})
		return
	}
	machine, err := manager.New(now, n.cfg, m.term, m.until, e.State)
	if err != nil {
		panic(err) // the configuration was tried; the stored log does not replay
	}
	n.machine, n.wake = machine, now
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
		m.out = append(m.out, Manage{n.cfg.Namespace, m.term, a})
		switch a := a.(type) {
		case manager.Outranked:
			m.elect(now, election.Outranked{By: a.By})
		case manager.Deposed:
			m.elect(now, election.Deposed{By: a.By})
			return
		}
	}
}
