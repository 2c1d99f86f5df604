// Package relay is the machine of a standby that serves lookups: it follows the
// leader's table as a lookup does, and passes on what it learns.
//
// # DESIGN
//
// Thousands of lookups cost the leader as much as one for each standby. The
// price is that a standby knows everything only as of when the leader last
// answered it. So it says how old its knowledge is, stretched by the drift
// bound, and the lookup counts from there: what a lookup believes to know is as
// true as if it had asked the leader at that time. A standby that has lost the
// leader goes on answering, and its answers grow old in the open.
//
// A standby never asks another standby: its shell sends to whoever leads.
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

// An Event is something that happens to a relay.
type Event interface{ relayEvent() }

type (
	// Ask is a question of a lookup that is connected to us.
	Ask struct{ *protocol.LookupRequest }
	// Upstream is something that happens to our own lookup.
	Upstream struct{ lookup.Event }
)

func (Ask) relayEvent()      {}
func (Upstream) relayEvent() {}

// An Action is something that the shell must do. Actions are done in order.
type Action interface{ relayAction() }

type (
	// Send sends a request to the leader, whoever that is.
	Send struct{ Request *protocol.LookupRequest }
	// Answer sends a reply to one lookup.
	Answer struct {
		Lookup uint64
		Reply  *protocol.LookupReply
	}
	// Turned tells a lookup that we cannot answer it.
	Turned struct{ Lookup uint64 }
	// Broadcast sends a reply to every lookup that is connected.
	Broadcast struct{ Reply *protocol.LookupReply }
	// Note tells the operator, and the counters, what happened and why.
	Note struct{ lookup.Note }
)

func (Send) relayAction()      {}
func (Answer) relayAction()    {}
func (Turned) relayAction()    {}
func (Broadcast) relayAction() {}
func (Note) relayAction()      {}

// Config is what a relay is told when it starts.
type Config struct {
	Namespace leasehold.Namespace
	Self      storage.ManagerID
	Limits    protocol.Limits
	// Drift bounds how our clock's rate may differ from a lookup's.
	Drift mono.Drift
	// Poll is how often to ask the leader: what we tell others is as old as
	// that, at most. Default 1 s.
	Poll time.Duration
	// Waiting bounds how many lookups may wait for us to know enough. Default
	// 4096.
	Waiting int
	// LogAge and LogChanges bound the changes kept for lookups, as a leader's.
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
	table  *table.Table // nil until the leader has answered
	log    *changelog.Log
	// waiting are questions that we know too little to answer, by lookup.
	waiting []*protocol.LookupRequest
}

// New returns a relay that knows nothing and asks at once.
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

// Table returns the table as far as we know it; nil if there is none yet. It is
// immutable.
func (m *Machine) Table() *table.Table { return m.table }

// Step handles an event that happened at now, and all time that has passed.
// It returns what to do, in order, and when to call Advance at the latest.
func (m *Machine) Step(now mono.Instant, e Event) ([]Action, mono.Instant) {
	m.out = m.out[:0]
	switch e := e.(type) {
	case Ask:
		m.ask(now, e.LookupRequest)
	case Upstream:
		return m.follow(now, e.Event)
	}
	return m.follow(now, nil)
}

// Advance handles the passing of time.
func (m *Machine) Advance(now mono.Instant) ([]Action, mono.Instant) {
	m.out = m.out[:0]
	return m.follow(now, nil)
}

// follow steps our own lookup; a nil event is the passing of time.
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
			m.learn(now, a)
		case lookup.Note:
			m.emit(Note{a})
		}
	}
	if _, refused := e.(lookup.Refused); refused && m.table == nil {
		m.turnWaiting()
	}
	if e != nil {
		m.answerWaiting(now)
	}
	return m.out, wake
}

func (m *Machine) emit(a Action) { m.out = append(m.out, a) }

// learn passes on what has changed. After a snapshot we do not know how it came
// about, and only say that there is news.
func (m *Machine) learn(now mono.Instant, p lookup.Publish) {
	before := m.table
	m.table = p.Table
	news := &protocol.LookupReply{
		Namespace: m.cfg.Namespace, Leader: m.cfg.Self, Term: m.lookup.Term(), LSN: p.Table.LSN(), Changes: p.Changes,
	}
	switch {
	case p.Crossing != nil:
		news.Crossing = p.Crossing
		m.log = changelog.NewAcross(p.Crossing, m.cfg.LogChanges, m.cfg.LogAge)
	case len(p.Changes) == 0:
		m.log = changelog.New(p.Table.LSN(), m.cfg.LogChanges, m.cfg.LogAge)
	default:
		news.From = p.Changes[0].LSN - 1
		m.log.Append(now, p.Changes)
	}
	if before != nil {
		m.emit(Broadcast{news})
	}
}

// ask answers a lookup, or lets it wait until we know enough.
func (m *Machine) ask(now mono.Instant, r *protocol.LookupRequest) {
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
		m.emit(Turned{r.Lookup})
		return
	}
	m.waiting = append(m.waiting, r)
}

// answer answers a lookup if we know enough, and reports whether we did.
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

// turnWaiting turns away those who wait for a table that there will not be.
func (m *Machine) turnWaiting() {
	for _, r := range m.waiting {
		m.emit(Turned{r.Lookup})
	}
	m.waiting = nil
}

// answerWaiting answers those whom we have kept waiting.
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
