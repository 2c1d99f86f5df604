package managerproc

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/machine/relay"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// follower is a relay: a standby follows a namespace's table on behalf of its lookups.
type follower struct {
	ns          leasehold.Namespace
	machine     *relay.Machine
	wake        mono.Instant
	lastRequest mono.Instant // last request of a lookup
	refused     error        // the leader's last refusal, if any
}

func (f *follower) name() leasehold.Namespace { return f.ns }

// Followed returns a standby's copy of a namespace's table; nil if it has none.
func (m *Machine) Followed(ns leasehold.Namespace) *table.Table {
	if i, ok := search(m.relays, (*follower).name, ns); ok {
		return m.relays[i].machine.Table()
	}
	return nil
}

// handleLookup handles a request of a lookup: the leader answers from its own table, a standby from the one
// that it follows.
func (m *Machine) handleLookup(now mono.Instant, l Lookup) {
	if l.Validate() != nil {
		return
	}
	n := m.find(l.Namespace)
	switch {
	case m.unknown(now, n):
		m.emit(RefuseLookup{l.Lookup, noSuchNamespace(l.Namespace)})
	case n != nil && n.machine != nil:
		m.stepManager(now, n, manager.Lookup{LookupRequest: l.LookupRequest})
	case n != nil && n.parked != nil:
		m.emit(RefuseLookup{l.Lookup, n.parked})
	case m.term != 0:
		m.emit(RedirectLookup{l.Lookup, m.notLeader()}) // this manager leads, but has not loaded the table
	default:
		m.relay(now, l)
	}
}

func (m *Machine) relay(now mono.Instant, l Lookup) {
	i, ok := search(m.relays, (*follower).name, l.Namespace)
	if !ok {
		if len(m.relays) >= m.cfg.MaxRelays {
			m.emit(RedirectLookup{l.Lookup, m.notLeader()})
			return
		}
		machine, err := relay.New(now, relay.Config{
			Namespace: l.Namespace, Self: m.cfg.self(), Limits: m.cfg.Limits,
			Drift: m.election.Drift(), Poll: m.cfg.RelayPoll, Rand: m.newRand(),
		})
		if err != nil {
			m.emit(RefuseLookup{l.Lookup, err})
			return
		}
		m.relays = slices.Insert(m.relays, i, &follower{ns: l.Namespace, machine: machine})
	}
	f := m.relays[i]
	f.lastRequest = now
	if f.refused != nil && f.machine.Table() == nil {
		m.emit(RefuseLookup{l.Lookup, f.refused})
		return
	}
	m.stepRelay(now, f, relay.Request{LookupRequest: l.LookupRequest})
}

// rejectLookup rejects a lookup's request, because the leader refuses the namespace or too many requests
// are waiting.
func (m *Machine) rejectLookup(f *follower, lookup uint64) {
	if f.refused != nil {
		m.emit(RefuseLookup{lookup, f.refused})
		return
	}
	m.emit(RedirectLookup{lookup, m.notLeader()})
}

// handleUpstream handles an event of the connection to the leader.
func (m *Machine) handleUpstream(now mono.Instant, e Followed) {
	i, ok := search(m.relays, (*follower).name, e.Namespace)
	if !ok {
		return
	}
	f := m.relays[i]
	switch e := e.Event.(type) {
	case lookup.Refused:
		f.refused = noSuchNamespace(f.ns)
		if e.Kind != leasehold.ErrNotFound {
			f.refused = leasehold.Errorf("find namespace", e.Kind, string(f.ns), "the leader cannot serve it")
		}
	case lookup.Reply:
		f.refused = nil
	}
	m.stepRelay(now, f, relay.Upstream{Event: e.Event})
}

func (m *Machine) sleptRelays(now mono.Instant) {
	for _, f := range m.relays {
		m.stepRelay(now, f, relay.Upstream{Event: lookup.Slept{}})
	}
}

// advanceRelays advances all relays, and closes those without recent lookup requests.
func (m *Machine) advanceRelays(now mono.Instant) mono.Instant {
	m.relays = slices.DeleteFunc(m.relays, func(f *follower) bool {
		idle := now.Sub(f.lastRequest) > m.cfg.RelayIdle
		if idle {
			m.emit(Unfollow{f.ns})
		}
		return idle
	})
	wake := mono.Never
	for _, f := range m.relays {
		if now >= f.wake {
			m.stepRelay(now, f, nil)
		}
		wake = min(wake, f.wake)
	}
	return wake
}

// stepRelay steps a relay; a nil event means Advance.
func (m *Machine) stepRelay(now mono.Instant, f *follower, e relay.Event) {
	var actions []relay.Action
	if e == nil {
		actions, f.wake = f.machine.Advance(now)
	} else {
		actions, f.wake = f.machine.Step(now, e)
	}
	for _, a := range actions {
		switch a := a.(type) {
		case relay.Send:
			if leader := m.notLeader().Leader; leader != "" {
				m.emit(Follow{f.ns, leader, a.Request})
			}
		case relay.Answer:
			m.emit(Answer{a.Lookup, a.Reply})
		case relay.Rejected:
			m.rejectLookup(f, a.Lookup)
		case relay.Broadcast:
			m.emit(Relay{f.ns, a.Reply})
		case relay.Note:
			m.emit(Note{f.ns, a.Note})
		}
	}
}
