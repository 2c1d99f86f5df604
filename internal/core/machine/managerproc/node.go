// Package node is the machine of one manager process: its part in finding out
// who leads; while it leads, one manager machine for each namespace; and while
// it does not, one relay for each namespace that its lookups ask for.
//
// # DESIGN
//
// Leadership is won once for all namespaces. The new leader reads the catalog,
// which says what namespaces there are and how they are configured, and then
// each loads its table and leads on its own. They share nothing but the term
// and the authority, so that what happens in one cannot change another; a
// namespace whose table cannot be read is tried again, one whose stored table
// makes no sense is parked, and the others do not wait for either.
//
// A configuration is applied only as it is stored: whoever wants to change one
// writes the catalog, under guard of the term, and then shows us what is there.
// So a successor never knows less than what owners were promised. A shorter
// lease comes with a promise to wait for the longer ones; the promise is taken
// out of the catalog when that time has passed on the clock of a leader that
// has lived through all of it.
//
// Who leads is decided by a record in the store (package election), or by a lease
// that the managers agree upon (package appointment). A group of the second kind
// has no store: tables live in the leader's memory. Where the answer to a load is
// that nothing is known, a census of the owners comes before the namespace is led,
// and what it finds becomes the first snapshot of the term's log.
//
// Answers of the store are marked with the term that asked, because a process
// may lose leadership and win it again while an answer is under way.
package managerproc

import (
	"cmp"
	"math/rand/v2"
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

// Config is what a manager process is told when it starts.
type Config struct {
	// Election is our part in electing a leader, unless Appointment is set: then
	// one is appointed, and tables die with their leaders.
	Election    byrecord.Config
	Appointment *bylease.Config
	// Configure makes of a stored configuration what the namespace's machine
	// is told, or says why it cannot. It must be a pure function.
	Configure func(storage.Namespace) (manager.Config, error)
	// Retry is how long to wait before asking the store again. Default 200 ms.
	Retry time.Duration
	// RelayPoll is how often a standby asks the leader on behalf of its
	// lookups. Default 1 s.
	RelayPoll time.Duration
	// MaxRelays bounds how many namespaces a standby follows at a time, known
	// or made up by a lookup. Default [storage.MaxNamespaces].
	MaxRelays int
	// RelayIdle is after how long a namespace is no longer followed that no
	// lookup has asked for. Default 1 minute.
	RelayIdle time.Duration
	Limits    protocol.Limits // default [protocol.DefaultLimits]

	// Rand seeds the machines' own.
	Rand *rand.Rand
}

func (c *Config) validate() error {
	if c.Configure == nil || c.Rand == nil {
		return leasehold.Errorf("node", leasehold.ErrInvalid, string(c.self()), "Configure and Rand must be set")
	}
	if c.Retry == 0 {
		c.Retry = 200 * time.Millisecond
	}
	if c.RelayPoll == 0 {
		c.RelayPoll = time.Second
	}
	if c.MaxRelays == 0 {
		c.MaxRelays = storage.MaxNamespaces
	}
	if c.RelayIdle == 0 {
		c.RelayIdle = time.Minute
	}
	if c.Limits == (protocol.Limits{}) {
		c.Limits = protocol.DefaultLimits
	}
	if c.Retry < 0 || c.RelayPoll < 0 || c.MaxRelays < 0 || c.RelayIdle < 0 {
		return leasehold.Errorf("node", leasehold.ErrInvalid, string(c.self()),
			"retry %v, poll %v, relays %d and idle time %v must not be negative", c.Retry, c.RelayPoll, c.MaxRelays, c.RelayIdle)
	}
	return nil
}

// self is our name.
func (c *Config) self() storage.ManagerID {
	if c.Appointment != nil {
		return c.Appointment.Self
	}
	return c.Election.Self
}

// A candidate is our part in finding out who leads.
type candidate interface {
	Step(mono.Instant, byrecord.Event) ([]byrecord.Action, mono.Instant)
	Advance(mono.Instant) ([]byrecord.Action, mono.Instant)
	Leader() (storage.ManagerID, leasehold.Term)
	Leads(mono.Instant) bool
	Stale(mono.Instant) bool
	Drift() mono.Drift
}

// A Machine is one manager process. It is not safe for concurrent use. The
// actions that Step and Advance return are valid until the next call.
type Machine struct {
	cfg      Config
	out      []Action
	election candidate
	// appointment is the same if leaders are appointed; nil otherwise.
	appointment *bylease.Machine
	wake        mono.Instant // the election's

	term  leasehold.Term // 0 while we do not lead
	until mono.Instant
	// mandate is how our term began.
	mandate byrecord.Lead
	// catalog is what we lead by; nil if it has not been read in this term.
	catalog   *storage.Catalog
	catalogAt mono.Instant // when to read it again
	// catalogDoubt: a read or write of the catalog has failed in this term.
	catalogDoubt bool
	led          []*namespace // sorted by name
	claims       map[leasehold.Namespace]claim
	// retired are machines that ended in this term and still have a batch under
	// way; past is what all that ended have done.
	retired []*retired
	past    map[leasehold.Namespace]past

	relays []*follower // sorted by name; none while we lead
}

// New returns a manager process that does not lead yet.
func New(now mono.Instant, cfg Config) (*Machine, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	m := &Machine{cfg: cfg, wake: now, catalogAt: mono.Never}
	var err error
	if cfg.Appointment != nil {
		m.appointment, err = bylease.New(*cfg.Appointment)
		m.election = m.appointment
	} else {
		m.election, err = byrecord.New(now, cfg.Election)
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Census returns the census that a namespace which we lead is in; nil if it is in
// none.
func (m *Machine) Census(ns leasehold.Namespace) *manager.Census {
	if n := m.find(ns); n != nil {
		return n.census
	}
	return nil
}

// Manager returns the machine that leads a namespace, nil if we do not.
func (m *Machine) Manager(ns leasehold.Namespace) *manager.Machine {
	if n := m.find(ns); n != nil {
		return n.machine
	}
	return nil
}

// Problem returns why a namespace that we lead cannot be served; nil if it is,
// or will be soon.
func (m *Machine) Problem(ns leasehold.Namespace) error {
	if n := m.find(ns); n != nil {
		return n.parked
	}
	return nil
}

// Catalog returns what we lead by; nil if we do not lead, or not yet.
func (m *Machine) Catalog() *storage.Catalog { return m.catalog }

// Term returns the term in which we lead, 0 if we do not.
func (m *Machine) Term() leasehold.Term { return m.term }

// Leads reports whether we act as leader at now.
func (m *Machine) Leads(now mono.Instant) bool { return m.election.Leads(now) }

// Leader returns who leads and in which term, as far as we know.
func (m *Machine) Leader() (storage.ManagerID, leasehold.Term) { return m.election.Leader() }

// Living returns who leads, as far as we know, and "" if that one has not been
// seen to live for as long as it may act.
func (m *Machine) Living(now mono.Instant) storage.ManagerID {
	id, _ := m.election.Leader()
	if m.election.Stale(now) || id == m.cfg.self() && !m.election.Leads(now) {
		return ""
	}
	return id
}

// Step handles an event that happened at now, and all time that has passed.
// It returns what to do, in order, and when to call Advance at the latest.
func (m *Machine) Step(now mono.Instant, e Event) ([]Action, mono.Instant) {
	m.out = m.out[:0]
	switch e := e.(type) {
	case Request:
		m.request(now, e)
	case Lookup:
		m.ask(now, e)
	case Election:
		m.elect(now, e.Event)
	case Appointment:
		m.appoint(now, e.Event)
	case Manager:
		m.managed(now, e)
	case Followed:
		m.followed(now, e)
	case Catalogued:
		m.catalogued(now, e)
	case Loaded:
		m.loaded(now, e)
	case Slept:
		m.elect(now, byrecord.Slept{})
		m.sleptRelays(now)
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
	if now >= m.catalogAt {
		m.readCatalog()
	}
	wake := min(m.wake, m.catalogAt)
	for _, r := range slices.Clone(m.retired) {
		if now >= r.wake {
			m.conclude(now, r, nil)
		}
		wake = min(wake, r.wake)
	}
	for _, n := range m.led {
		m.rouse(now, n)
		wake = min(wake, n.wake, n.settleAt)
	}
	return m.out, min(wake, m.advanceRelays(now))
}

// rouse does for a namespace what time demands.
func (m *Machine) rouse(now mono.Instant, n *namespace) {
	if now >= n.wake {
		switch {
		case n.machine != nil:
			m.manage(now, n, nil)
		case n.census != nil:
			m.survey(now, n, nil)
		default:
			m.load(n)
		}
	}
	if now >= n.settleAt {
		n.settleAt = now.Add(max(10*m.cfg.Retry, n.entry.Promised)) // if it is not done by then
		m.emit(Settle{m.term, n.entry})
	}
}

func (m *Machine) emit(a Action) { m.out = append(m.out, a) }

// newRand gives a machine randomness of its own.
func (m *Machine) newRand() *rand.Rand {
	return rand.New(rand.NewPCG(m.cfg.Rand.Uint64(), m.cfg.Rand.Uint64())) //nolint:gosec // for pauses; a manager gives its namespaces what nobody can guess
}

func (m *Machine) notLeader() protocol.NotLeader {
	leader, term := m.election.Leader()
	if leader == m.cfg.self() {
		leader = "" // ours, from before we were started, or not loaded yet
	}
	return protocol.NotLeader{Term: term, Leader: leader}
}

// search finds something by its namespace in a sorted slice.
func search[T any](sorted []T, name func(T) leasehold.Namespace, ns leasehold.Namespace) (int, bool) {
	return slices.BinarySearchFunc(sorted, ns, func(t T, ns leasehold.Namespace) int { return cmp.Compare(name(t), ns) })
}
