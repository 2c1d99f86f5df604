// Package managerproc is the machine of one manager process: leader election; on the leader, one
// manager machine for each namespace; on a standby, one relay for each namespace that its lookups
// request.
//
// # Design
//
// There is one election for all namespaces. The new leader reads the catalog, which has all
// namespaces and their configuration. Then each namespace loads its table and runs independently.
// They share only the term and the authority, so that events in one namespace cannot affect
// another. If a table cannot be read, the read is retried. A namespace with a corrupt table is
// parked. The other namespaces do not wait for either.
//
// A configuration is applied only after it is stored: an operator's change is written to the
// catalog, guarded by the term, and then delivered as [Catalogued]. So a successor always knows the
// longest lease that owners may hold. A shorter lease comes with a Promised time, for which leaders
// wait for the longer leases. It is removed from the catalog when that time has passed on the clock
// of a leader that was in office for all of it.
//
// Leadership is decided by a record in the store (package byrecord), or by a lease that the
// managers agree on (package bylease). A group of the second kind has no store: tables are in the
// leader's memory. If a load returns an unknown state, a census of the owners precedes the
// leadership of the namespace, and its result is the first snapshot of the term's log.
//
// Replies of the store have the term of their request, because a process may lose leadership and
// win it again while a reply is in flight.
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

// Config is the configuration of a manager process.
type Config struct {
	// Election configures leader election, unless Appointment is set: then leaders are elected by a
	// lease, and tables are lost with their leaders.
	Election    byrecord.Config
	Appointment *bylease.Config
	// Configure converts a stored configuration to that of the namespace's machine, or returns why
	// it is invalid. It must be a pure function.
	Configure func(storage.Namespace) (manager.Config, error)
	// Retry is the retry interval for requests to the store. Default 200 ms.
	Retry time.Duration
	// RelayPoll is the interval at which a standby polls the leader on behalf of its lookups.
	// Default 1 s.
	RelayPoll time.Duration
	// MaxRelays limits the namespaces that a standby follows, including nonexistent ones that
	// lookups request. Default [storage.MaxNamespaces].
	MaxRelays int
	// RelayIdle is the time without lookup requests after which a standby stops following a
	// namespace. Default 1 minute.
	RelayIdle time.Duration
	Limits    protocol.Limits // default [protocol.DefaultLimits]

	// Rand seeds the random sources of the machines.
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

// self returns the name of this manager.
func (c *Config) self() storage.ManagerID {
	if c.Appointment != nil {
		return c.Appointment.Self
	}
	return c.Election.Self
}

// A candidate is a leader election machine.
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
	// appointment is election if leaders are elected by a lease; nil otherwise.
	appointment *bylease.Machine
	wake        mono.Instant // of the election

	term  leasehold.Term // 0 if this manager does not lead
	until mono.Instant
	// mandate has the parameters of the takeover.
	mandate byrecord.Lead
	// lostFloor is the floor of namespaces whose gap is not stored, by the evidence of others in this term.
	lostFloor uint64
	// catalog is the catalog in use; nil if it has not been read in this term.
	catalog   *storage.Catalog
	catalogAt mono.Instant // next read
	// catalogDoubt: a read or write of the catalog has failed in this term.
	catalogDoubt bool
	led          []*namespace // sorted by name
	claims       map[leasehold.Namespace]claim
	// retired has the machines that ended in this term with a commit in flight; past has the final
	// state of all machines that ended.
	retired []*retired
	past    map[leasehold.Namespace]past

	relays []*follower // sorted by name; empty on the leader
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

// Census returns the running census of a namespace; nil if there is none.
func (m *Machine) Census(ns leasehold.Namespace) *manager.Census {
	if n := m.find(ns); n != nil {
		return n.census
	}
	return nil
}

// Manager returns the machine of a namespace; nil if this manager does not lead it.
func (m *Machine) Manager(ns leasehold.Namespace) *manager.Machine {
	if n := m.find(ns); n != nil {
		return n.machine
	}
	return nil
}

// Problem returns why a namespace cannot be served; nil if it is served, or will be soon.
func (m *Machine) Problem(ns leasehold.Namespace) error {
	if n := m.find(ns); n != nil {
		return n.parked
	}
	return nil
}

// Catalog returns the catalog in use; nil if this manager does not lead, or has not read it.
func (m *Machine) Catalog() *storage.Catalog { return m.catalog }

// Term returns the term in which this manager leads, 0 if it does not.
func (m *Machine) Term() leasehold.Term { return m.term }

// Leads reports whether this manager may act as leader at now.
func (m *Machine) Leads(now mono.Instant) bool { return m.election.Leads(now) }

// Leader returns the last known leader and its term.
func (m *Machine) Leader() (storage.ManagerID, leasehold.Term) { return m.election.Leader() }

// Living returns the last known leader, or "" if there was no sign of it for longer than its
// authority.
func (m *Machine) Living(now mono.Instant) storage.ManagerID {
	id, _ := m.election.Leader()
	if m.election.Stale(now) || id == m.cfg.self() && !m.election.Leads(now) {
		return ""
	}
	return id
}

// Step handles an event at now, and the time passed until then. It returns the actions, in order,
// and the latest time for the next Advance.
func (m *Machine) Step(now mono.Instant, e Event) ([]Action, mono.Instant) {
	m.out = m.out[:0]
	switch e := e.(type) {
	case Request:
		m.handleRequest(now, e)
	case Died:
		m.handleDeath(now, e)
	case Lookup:
		m.handleLookup(now, e)
	case Election:
		m.elect(now, e.Event)
	case Appointment:
		m.stepAppointment(now, e.Event)
	case Manager:
		m.handleManager(now, e)
	case Followed:
		m.handleUpstream(now, e)
	case Catalogued:
		m.handleCatalog(now, e)
	case Loaded:
		m.handleLoaded(now, e)
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
			m.stepRetired(now, r, nil)
		}
		wake = min(wake, r.wake)
	}
	for _, n := range m.led {
		m.advanceNamespace(now, n)
		wake = min(wake, n.wake, n.settleAt)
	}
	return m.out, min(wake, m.advanceRelays(now))
}

// advanceNamespace handles the passing of time for a namespace.
func (m *Machine) advanceNamespace(now mono.Instant, n *namespace) {
	if now >= n.wake {
		switch {
		case n.machine != nil:
			m.stepManager(now, n, nil)
		case n.census != nil:
			m.stepCensus(now, n, nil)
		default:
			m.load(n)
		}
	}
	if now >= n.settleAt {
		n.settleAt = now.Add(max(10*m.cfg.Retry, n.entry.Promised)) // retry if the write fails
		m.emit(Settle{m.term, n.entry})
	}
}

func (m *Machine) emit(a Action) { m.out = append(m.out, a) }

// newRand returns a random source for a machine.
func (m *Machine) newRand() *rand.Rand {
	return rand.New(rand.NewPCG(m.cfg.Rand.Uint64(), m.cfg.Rand.Uint64())) //nolint:gosec // for backoff; Configure may set an unpredictable Rand
}

func (m *Machine) notLeader() protocol.NotLeader {
	leader, term := m.election.Leader()
	if leader == m.cfg.self() {
		leader = "" // a record of an earlier process of this manager, or not loaded yet
	}
	return protocol.NotLeader{Term: term, Leader: leader}
}

// search finds an element by its namespace in a sorted slice.
func search[T any](sorted []T, name func(T) leasehold.Namespace, ns leasehold.Namespace) (int, bool) {
	return slices.BinarySearchFunc(sorted, ns, func(t T, ns leasehold.Namespace) int { return cmp.Compare(name(t), ns) })
}
