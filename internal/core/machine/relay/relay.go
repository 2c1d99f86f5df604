// Package relay is the state machine of a standby that serves lookups: it follows the leader's
// table as a lookup does, and forwards the changes.
//
// # DESIGN
//
// With relays the leader serves one lookup for each standby instead of thousands of lookups. The
// cost is staleness: the table of a standby is complete only as of its last request that the
// leader has answered. So each reply contains the age of the table, stretched by the drift
// bound, and the lookup subtracts it. The result is as reliable as if the lookup had sent its request to the
// leader at that time. A standby without contact to the leader still replies, with a growing age.
//
// A standby never follows another standby: its shell sends requests only to the leader.
package relay

import (
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/changelog"
	"github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// An Event is an input of the machine.
type Event interface{ relayEvent() }

type (
	// Request is a request of a connected lookup.
	Request struct{ *protocol.LookupRequest }
	// Upstream is an event of the relay's own lookup.
	Upstream struct{ lookup.Event }
)

func (Request) relayEvent()  {}
func (Upstream) relayEvent() {}

// An Action is an output of the machine. The shell executes actions in order.
type Action interface{ relayAction() }

type (
	// Send sends a request to the current leader.
	Send struct{ Request *protocol.LookupRequest }
	// Answer sends a reply to one lookup.
	Answer struct {
		Lookup uint64
		Reply  *protocol.LookupReply
	}
	// Rejected rejects the request of a lookup.
	Rejected struct{ Lookup uint64 }
	// Broadcast sends a reply to every lookup that is connected.
	Broadcast struct{ Reply *protocol.LookupReply }
	// Note is a note of the relay's own lookup.
	Note struct{ lookup.Note }
)

func (Send) relayAction()      {}
func (Answer) relayAction()    {}
func (Rejected) relayAction()  {}
func (Broadcast) relayAction() {}
func (Note) relayAction()      {}

// Config configures a relay.
type Config struct {
	Namespace leasehold.Namespace
	Self      storage.ManagerID
	Limits    protocol.Limits
	// Drift limits the difference between the clock rates of the relay and of a lookup.
	Drift mono.Drift
	// Poll is the interval of requests to the leader. While the leader replies, it limits the age
	// of replies to lookups. Default 1 s.
	Poll time.Duration
	// Waiting limits the number of requests that wait for a newer table. Default
	// 4096.
	Waiting int
	// LogAge and LogChanges limit the changes kept for lookups, as in a leader.
	LogAge     time.Duration
	LogChanges int

	// Rand draws jitter.
	Rand *rand.Rand
}

// A Machine relays one namespace. It is not safe for concurrent use. The
// actions that Step and Advance return are valid until the next call.
type Machine struct {
	cfg    Config
	out    []Action
	lookup *lookup.Machine
	table  *table.Table // nil until the first reply of the leader
	log    *changelog.Log
	// waiting are requests that need a newer table, at most one for each lookup.
	waiting []*protocol.LookupRequest
}

// New returns a relay without a table that sends a request at once.
func New(now mono.Instant, cfg Config) (*Machine, error) {
	if cfg.Poll == 0 {
		cfg.Poll = time.Second
	}
	if cfg.Waiting == 0 {
		cfg.Waiting = 4096
	}
	if cfg.LogAge == 0 {
		cfg.LogAge = 5 * time.Minute
	}
	if cfg.LogChanges == 0 {
		cfg.LogChanges = 1 << 14
	}
	l, err := lookup.New(now, lookup.Config{
		Namespace: cfg.Namespace, Limits: cfg.Limits, Rand: cfg.Rand,
		Poll: cfg.Poll, Retry: min(500*time.Millisecond, cfg.Poll), Stale: max(30*time.Second, 3*cfg.Poll),
	})
	if err != nil {
		return nil, err
	}
	return &Machine{cfg: cfg, lookup: l}, nil
}

// Table returns the relay's table, nil if there is none yet. It is
// immutable.
func (m *Machine) Table() *table.Table { return m.table }

// Step handles deadlines up to now and the event. It returns the actions in order, and
// the latest instant for the next call of Advance.
func (m *Machine) Step(now mono.Instant, e Event) ([]Action, mono.Instant) {
	m.out = m.out[:0]
	switch e := e.(type) {
	case Request:
		m.handleRequest(now, e.LookupRequest)
	case Upstream:
		return m.follow(now, e.Event)
	}
	return m.follow(now, nil)
}

// Advance handles deadlines up to now.
func (m *Machine) Advance(now mono.Instant) ([]Action, mono.Instant) {
	m.out = m.out[:0]
	return m.follow(now, nil)
}

// follow steps the relay's own lookup, or advances its time if the event is nil.
func (m *Machine) follow(now mono.Instant, e lookup.Event) ([]Action, mono.Instant) {
	var (
		actions []lookup.Action
		wake    mono.Instant
	)
	if e == nil {
		actions, wake = m.lookup.Advance(now)
	} else {
		actions, wake = m.lookup.Step(now, e)
	}
	for _, a := range actions {
		switch a := a.(type) {
		case lookup.Send:
			m.emit(Send{a.Request})
		case lookup.Publish:
			m.publish(now, a)
		case lookup.Note:
			m.emit(Note{a})
		}
	}
	if _, refused := e.(lookup.Refused); refused && m.table == nil {
		m.rejectWaiting()
	}
	if e != nil {
		m.answerWaiting(now)
	}
	return m.out, wake
}

func (m *Machine) emit(a Action) { m.out = append(m.out, a) }

// publish replaces the table, and broadcasts the changes. After a snapshot the changes are not known, and
// the broadcast contains only the LSN.
func (m *Machine) publish(now mono.Instant, p lookup.Publish) {
	before := m.table
	m.table = p.Table
	reply := &protocol.LookupReply{
		Namespace: m.cfg.Namespace, Leader: m.cfg.Self, Term: m.lookup.Term(), LSN: p.Table.LSN(), Changes: p.Changes,
	}
	switch {
	case p.Crossing != nil:
		reply.Crossing = p.Crossing
		m.log = changelog.NewAcross(p.Crossing, m.cfg.LogChanges, m.cfg.LogAge)
	case len(p.Changes) == 0:
		m.log = changelog.New(p.Table.LSN(), m.cfg.LogChanges, m.cfg.LogAge)
	default:
		reply.From = p.Changes[0].LSN - 1
		m.log.Append(now, p.Changes)
	}
	if before != nil {
		m.emit(Broadcast{reply})
	}
}

// handleRequest replies to a lookup, or queues the request until the table is new enough.
func (m *Machine) handleRequest(now mono.Instant, r *protocol.LookupRequest) {
	if r.Validate() != nil || r.Namespace != m.cfg.Namespace {
		return
	}
	if m.answer(now, r) {
		return
	}
	for i, w := range m.waiting {
		if w.Lookup == r.Lookup {
			m.waiting[i] = r
			return
		}
	}
	if len(m.waiting) >= m.cfg.Waiting {
		m.emit(Rejected{r.Lookup})
		return
	}
	m.waiting = append(m.waiting, r)
}

// answer replies to a lookup if the table is new enough, and reports whether it is.
func (m *Machine) answer(now mono.Instant, r *protocol.LookupRequest) bool {
	age, known := m.lookup.Age(now)
	if !known {
		return false
	}
	reply := &protocol.LookupReply{
		Namespace: m.cfg.Namespace, Leader: m.cfg.Self, Term: m.lookup.Term(), Age: m.cfg.Drift.Stretch(age),
	}
	if m.log.FillReply(now, r, m.table, m.Table, reply) == changelog.Ahead {
		return false
	}
	m.emit(Answer{r.Lookup, reply})
	return true
}

// rejectWaiting rejects all waiting requests: the leader has refused, so there will be no table.
func (m *Machine) rejectWaiting() {
	for _, r := range m.waiting {
		m.emit(Rejected{r.Lookup})
	}
	m.waiting = nil
}

// answerWaiting replies to the waiting requests for which the table is now new enough.
func (m *Machine) answerWaiting(now mono.Instant) {
	kept := m.waiting[:0]
	for _, r := range m.waiting {
		if !m.answer(now, r) {
			kept = append(kept, r)
		}
	}
	clear(m.waiting[len(kept):])
	m.waiting = kept
}
