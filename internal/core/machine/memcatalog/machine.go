package memcatalog

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// A Request is a leader's message to another manager. It may contain a catalog to store, and always
// requests the receiver's state.
type Request struct {
	Term leasehold.Term
	Seq  uint64 // increases with every message of the sender's process
	// Catalog is to be stored; nil if there is none. Its Term is the leader's. Immutable.
	Catalog *storage.Catalog
	Full    bool // the response must contain the catalog
	// To is the process number of the receiver, from a response in this term; 0 if unknown.
	To uint64
}

// A Response answers a Request.
type Response struct {
	Process uint64         // the sender's
	Term    leasehold.Term // highest term that the sender has received; requests of lower terms are rejected
	Seq     uint64         // of the request
	// Known: the sender has a catalog with version At, written by the leader of term Wrote.
	Known   bool
	Wrote   leasehold.Term
	At      storage.Version
	Catalog *storage.Catalog // if Full was requested; immutable
}

// An Event is an input of a manager's replica of the catalog.
type Event interface{ memcatalogEvent() }

type (
	// Lead starts leading in a term, and requests the catalog. The response is [Loaded]; a later
	// one replaces an earlier one.
	Lead struct{ Term leasehold.Term }
	// StepDown stops leading.
	StepDown struct{}
	// Write requests that a catalog replaces the one with version Prev, in the current term. The
	// response is [Written].
	Write struct {
		Prev    storage.Version
		Catalog *storage.Catalog
	}
	// Asked is a request from another manager; the response is [Answer].
	Asked struct {
		From    storage.ManagerID
		Request *Request
	}
	// Answered is another manager's response. The shell must deliver it only while this manager has
	// the authority to lead in the term of [Lead].
	Answered struct {
		From     storage.ManagerID
		Response *Response
	}
	// Disputed reports that a manager with another configuration of the group runs. With
	// Config.Rebuild, a leader does not rebuild for this time: the managers that do not respond may be
	// a majority of the other configuration.
	Disputed struct{ For time.Duration }
)

func (Lead) memcatalogEvent()     {}
func (StepDown) memcatalogEvent() {}
func (Write) memcatalogEvent()    {}
func (Asked) memcatalogEvent()    {}
func (Answered) memcatalogEvent() {}
func (Disputed) memcatalogEvent() {}

// An Action is executed by the shell, in order.
type Action interface{ memcatalogAction() }

type (
	// Ask sends a request to another manager. The request may be lost.
	Ask struct {
		To      storage.ManagerID
		Request *Request
	}
	// Answer sends the response to a request.
	Answer struct {
		To       storage.ManagerID
		Response *Response
	}
	// Loaded has the committed catalog for the leader. It is immutable.
	Loaded struct{ Catalog *storage.Catalog }
	// Written is the result of [Write]. Done means that a majority has it. Conflict means that the
	// current catalog has another version, or that another write is in progress.
	Written struct {
		Outcome storage.Outcome
		Catalog *storage.Catalog // current catalog
	}
	// Outranked reports that another manager has received a higher term.
	Outranked struct{ By leasehold.Term }
	// Forgotten reports that too few managers have a catalog: the group is new, or too many were
	// restarted. The machine waits for Wait, because owners may hold leases of earlier leaders that no
	// manager has a record of. It is emitted again with Wait 0 when the wait is over.
	Forgotten struct{ Wait time.Duration }
)

func (Ask) memcatalogAction()       {}
func (Answer) memcatalogAction()    {}
func (Loaded) memcatalogAction()    {}
func (Written) memcatalogAction()   {}
func (Outranked) memcatalogAction() {}
func (Forgotten) memcatalogAction() {}

// Config is the configuration of a manager. All but Self and Process must be the same in the whole
// group.
type Config struct {
	Self storage.ManagerID
	// Process is a unique, unguessable number of this process.
	Process uint64
	Peers   []storage.ManagerID // all managers of the group, including Self
	// Longest is the longest time for which an owner may hold a lease without renewal, on any
	// clock: an upper bound for all namespaces.
	Longest time.Duration
	// Rebuild: the namespaces can be created again, so a catalog that a majority does not have may be
	// lost. Without it a leader waits for the responses of all managers.
	Rebuild bool
	// Retry is the retransmission interval. Default 200 ms.
	Retry time.Duration
	// Refresh is the interval at which the leader checks whether all managers still have the
	// catalog: a restarted one does not. Default 1 s.
	Refresh time.Duration
}

func (c *Config) validate() error {
	if c.Retry == 0 {
		c.Retry = 200 * time.Millisecond
	}
	if c.Refresh == 0 {
		c.Refresh = time.Second
	}
	bad := func(format string, args ...any) error {
		return leasehold.Errorf("memcatalog", leasehold.ErrInvalid, string(c.Self), format, args...)
	}
	switch {
	case c.Process == 0:
		return bad("Process must be set")
	case c.Self == "" || !slices.Contains(c.Peers, c.Self):
		return bad("a manager must be one of its group %v", c.Peers)
	case len(slices.Compact(slices.Sorted(slices.Values(c.Peers)))) != len(c.Peers):
		return bad("the group %v has a manager twice", c.Peers)
	case c.Longest <= 0 || c.Retry < 0 || c.Refresh < 0:
		return bad("longest lease %v must be positive, retry %v and refresh %v must not be negative", c.Longest, c.Retry, c.Refresh)
	}
	return nil
}

// A Machine is one manager's replica of the catalog. It is not safe for concurrent
// use. The actions that Step and Advance return are valid until the next call.
type Machine struct {
	cfg Config
	out []Action
	seq uint64

	maxTerm leasehold.Term   // highest term received from any leader
	have    *storage.Catalog // nil while this manager is blank
	// disputed: until then no catalog is rebuilt.
	disputed mono.Instant

	lead *leadership // nil if this manager does not lead
}

// New returns a blank manager.
func New(cfg Config) (*Machine, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.Peers = slices.Sorted(slices.Values(cfg.Peers))
	return &Machine{cfg: cfg}, nil
}

// Catalog returns this manager's catalog, nil if it is blank. It may be stale unless this manager
// leads.
func (m *Machine) Catalog() *storage.Catalog { return m.have }

// Missing returns the managers that have not responded in this term, while the leader waits for
// them.
func (m *Machine) Missing() (ids []storage.ManagerID) {
	if m.lead == nil || m.lead.catalog != nil {
		return nil
	}
	for _, id := range m.cfg.Peers {
		if _, answered := m.lead.known[id]; !answered {
			ids = append(ids, id)
		}
	}
	return ids
}

// Step handles an event at now, and the time passed until then. It returns the actions, in order,
// and the latest time for the next Advance.
func (m *Machine) Step(now mono.Instant, e Event) ([]Action, mono.Instant) {
	m.out = m.out[:0]
	switch e := e.(type) {
	case Lead:
		m.begin(now, e.Term)
	case StepDown:
		m.stepDown()
	case Write:
		m.write(now, e)
	case Asked:
		m.handleRequest(e)
	case Answered:
		m.handleResponse(now, e)
	case Disputed:
		m.disputed = max(m.disputed, now.Add(e.For))
	}
	return m.finish(now)
}

// Advance handles the passing of time.
func (m *Machine) Advance(now mono.Instant) ([]Action, mono.Instant) {
	m.out = m.out[:0]
	return m.finish(now)
}

func (m *Machine) finish(now mono.Instant) ([]Action, mono.Instant) {
	if m.lead == nil {
		return m.out, mono.Never
	}
	return m.out, m.retransmit(now)
}

func (m *Machine) emit(a Action) { m.out = append(m.out, a) }

// handleRequest handles a leader's request. It stores the catalog, unless this manager has received a
// higher term. A request of a higher term ends this manager's own leadership, which must not replace what
// this manager confirms now. A blank manager stores it only if the request is for its present process: an earlier
// process may have confirmed a newer catalog.
func (m *Machine) handleRequest(e Asked) {
	r := e.Request
	if !slices.Contains(m.cfg.Peers, e.From) || e.From == m.cfg.Self {
		return
	}
	if m.lead != nil && r.Term > m.lead.term {
		m.stepDown()
	}
	if r.Term >= m.maxTerm {
		m.maxTerm = r.Term
		accepted := m.have != nil || r.To == m.cfg.Process
		if r.Catalog != nil && accepted && (m.have == nil || newer(r.Catalog, m.have)) {
			m.have = r.Catalog
		}
	}
	m.emit(Answer{e.From, m.response(r)})
}

func (m *Machine) response(r *Request) *Response {
	out := &Response{Process: m.cfg.Process, Term: m.maxTerm, Seq: r.Seq, Known: m.have != nil}
	if m.have != nil {
		out.Wrote, out.At = m.have.Term, m.have.Version
		if r.Full {
			out.Catalog = m.have
		}
	}
	return out
}

// newer reports whether a was written after b.
func newer(a, b *storage.Catalog) bool {
	return a.Term > b.Term || a.Term == b.Term && a.Version > b.Version
}
