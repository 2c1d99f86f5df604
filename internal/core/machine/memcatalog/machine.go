package memcatalog

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// A Request is what a leader says to another manager: that it leads, and if it
// has a catalog to be kept, which. It always asks what the other has.
type Request struct {
	Term leasehold.Term
	Seq  uint64 // rises with every message of the sender's process
	// Catalog is to be kept; nil if none is. Its Term is the leader's. Immutable.
	Catalog *storage.Catalog
	Full    bool // the answer is to have the catalog
	// To is the process that it is for, by its own number, which the leader has heard
	// since it leads; 0 if it has not.
	To uint64
}

// A Response answers one.
type Response struct {
	Process uint64         // the sender's
	Term    leasehold.Term // the highest that the sender has heard of: what is asked in a lower one is refused
	Seq     uint64         // of the request
	// Known: the sender has a catalog, written in At by the leader of Wrote.
	Known   bool
	Wrote   leasehold.Term
	At      storage.Version
	Catalog *storage.Catalog // if asked for; immutable
}

// An Event is something that happens to a manager's replica of the catalog.
type Event interface{ memcatalogEvent() }

type (
	// Lead says that we lead in a term, and asks what the catalog is. [Loaded]
	// answers; the last counts.
	Lead struct{ Term leasehold.Term }
	// StepDown says that we do not lead.
	StepDown struct{}
	// Write asks for a catalog to be kept, in our term, in place of the one with
	// version Prev. [Written] answers.
	Write struct {
		Prev    storage.Version
		Catalog *storage.Catalog
	}
	// Asked is a request of another manager; [Answer] answers it.
	Asked struct {
		From    storage.ManagerID
		Request *Request
	}
	// Answered is another manager's response. The shell hands it over only if we
	// have the authority to lead in the term of the [Lead] now.
	Answered struct {
		From     storage.ManagerID
		Response *Response
	}
)

func (Lead) memcatalogEvent()     {}
func (StepDown) memcatalogEvent() {}
func (Write) memcatalogEvent()    {}
func (Asked) memcatalogEvent()    {}
func (Answered) memcatalogEvent() {}

// An Action is something that the shell must do. Actions are done in order.
type Action interface{ memcatalogAction() }

type (
	// Ask sends a request to another manager. It may be lost.
	Ask struct {
		To      storage.ManagerID
		Request *Request
	}
	// Answer sends the response to a request.
	Answer struct {
		To       storage.ManagerID
		Response *Response
	}
	// Loaded says what the catalog is, for the leader to lead by: a majority has
	// it. It is immutable.
	Loaded struct{ Catalog *storage.Catalog }
	// Written answers [Write]. What is done a majority has; a conflict means that
	// the catalog is another by now, or that another write is under way.
	Written struct {
		Outcome storage.Outcome
		Catalog *storage.Catalog // the one in force
	}
	// Outranked says that another manager has heard of a higher term than ours.
	Outranked struct{ By leasehold.Term }
	// Forgotten says that too many managers know nothing: the group is new, or too
	// many were restarted. For Wait nothing is done, because owners may have leases
	// that nobody remembers.
	Forgotten struct{ Wait time.Duration }
)

func (Ask) memcatalogAction()       {}
func (Answer) memcatalogAction()    {}
func (Loaded) memcatalogAction()    {}
func (Written) memcatalogAction()   {}
func (Outranked) memcatalogAction() {}
func (Forgotten) memcatalogAction() {}

// Config is what a manager knows about its group. All but Self and Process must be
// the same everywhere.
type Config struct {
	Self storage.ManagerID
	// Process is a number that no other process has ever had or will have, and
	// nobody can guess.
	Process uint64
	Peers   []storage.ManagerID // all of the group, Self among them
	// Longest is for how long an owner may believe in a lease, at most, on any
	// clock: no namespace is given a longer one.
	Longest time.Duration
	// Retry is when an unanswered message is sent again. Default 200 ms.
	Retry time.Duration
	// Refresh is how often the leader asks whether all have the catalog still:
	// one that was restarted does not. Default 1 s.
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

	heard leasehold.Term   // the highest term that anyone has led in
	have  *storage.Catalog // nil while we are blank

	lead *leadership // nil while we do not
}

// New returns a manager that knows nothing.
func New(cfg Config) (*Machine, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.Peers = slices.Sorted(slices.Values(cfg.Peers))
	return &Machine{cfg: cfg}, nil
}

// Catalog returns the catalog as we know it, nil if we do not. Unless we lead by
// it, it may be old.
func (m *Machine) Catalog() *storage.Catalog { return m.have }

// Missing returns who has not answered since we lead, if we do and wait for that.
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

// Step handles an event that happened at now, and all time that has passed.
// It returns what to do, in order, and when to call Advance at the latest.
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
		m.asked(e)
	case Answered:
		m.answered(now, e)
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
	return m.out, m.carryOn(now)
}

func (m *Machine) emit(a Action) { m.out = append(m.out, a) }

// asked answers a leader, and keeps what it sends, unless we have heard of a later
// one. What a leader sends to one who knows nothing must be meant for this process:
// the one before may have confirmed what the leader does not know of.
func (m *Machine) asked(e Asked) {
	r := e.Request
	if !slices.Contains(m.cfg.Peers, e.From) || e.From == m.cfg.Self {
		return
	}
	if r.Term >= m.heard {
		m.heard = r.Term
		meant := m.have != nil || r.To == m.cfg.Process
		if r.Catalog != nil && meant && (m.have == nil || newer(r.Catalog, m.have)) {
			m.have = r.Catalog
		}
	}
	m.emit(Answer{e.From, m.response(r)})
}

func (m *Machine) response(r *Request) *Response {
	out := &Response{Process: m.cfg.Process, Term: m.heard, Seq: r.Seq, Known: m.have != nil}
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
