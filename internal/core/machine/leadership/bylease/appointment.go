// Package bylease is leader election by a Flease lease that the managers agree on among themselves,
// instead of a record in a store.
//
// # Design
//
// It has the same interface as package byrecord, and emits the same actions: that this manager
// leads, for how long, and that it does not lead any more. The lease decides. What remains is that
// each term is led at most once. A term is the fencing token (fence) of a lease, and increases from
// lease to lease. A leader that has stepped down may have lost the state of its term, and must not
// use the numbers of the term again. So a leader that steps down before the lease ends does not
// lead again under the same lease: the shell releases the lease, and the next one has a higher
// term.
package bylease

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// An Event is an event of the leadership lease.
type Event interface{ appointmentEvent() }

type (
	// Appointed: this manager has the lease, with a new fence, until Until.
	Appointed struct {
		Term  leasehold.Term
		Until mono.Instant
	}
	// Extended: the lease was renewed.
	Extended struct {
		Term  leasehold.Term
		Until mono.Instant
	}
	// Dismissed: this manager does not have the lease; it has ended, or was released.
	Dismissed struct{}
	// Leads is the probable holder, "" if there is none. It is a hint.
	Leads struct {
		Manager storage.ManagerID
		Term    leasehold.Term
	}
)

func (Appointed) appointmentEvent() {}
func (Extended) appointmentEvent()  {}
func (Dismissed) appointmentEvent() {}
func (Leads) appointmentEvent()     {}

// Config is the configuration of a manager.
type Config struct {
	Self storage.ManagerID
	// Drift bounds the ratio of clock rates. Default 1.20.
	Drift mono.Drift
	// Fade is how long a leader is assumed to lead after the last hint. Default 3 s.
	Fade time.Duration
	// Remember is how long after this manager first knew a leader the claim of a higher term by an
	// owner is credible: running owners have reconnected within this time. Default 5 min.
	Remember time.Duration
}

// A Machine is the leader election of one manager. It is not safe for concurrent use. The actions
// that Step, StepLease and Advance return are valid until the next call. They are those of package
// byrecord: Lead, Extend, StepDown, Resigned and Note. The shell releases the lease after StepDown.
type Machine struct {
	cfg Config
	out []byrecord.Action

	term    leasehold.Term // newest term in which this manager led
	leading bool
	until   mono.Instant
	lapsed  bool

	leader     storage.ManagerID // last known leader
	leaderTerm leasehold.Term
	hintAt     mono.Instant // last hint, if the leader is another manager

	claims claims

	held                bool // this manager has the lease, even if it does not lead
	resigning, resigned bool
}

// New returns a manager that does not lead.
func New(cfg Config) (*Machine, error) {
	if cfg.Drift == 0 {
		cfg.Drift = 1.20
	}
	if cfg.Fade == 0 {
		cfg.Fade = 3 * time.Second
	}
	if cfg.Remember == 0 {
		cfg.Remember = 5 * time.Minute
	}
	switch {
	case cfg.Self == "":
		return nil, leasehold.Errorf("appointment", leasehold.ErrInvalid, "", "Self must be set")
	case !(cfg.Drift >= 1 && cfg.Drift <= 10) || cfg.Fade < 0 || cfg.Remember < 0:
		return nil, leasehold.Errorf("appointment", leasehold.ErrInvalid, string(cfg.Self),
			"drift is %v, fade %v and remember %v, want 1 to 10 and positive times", float64(cfg.Drift), cfg.Fade, cfg.Remember)
	}
	return &Machine{cfg: cfg}, nil
}

// Leader returns the last known leader and its term.
func (m *Machine) Leader() (storage.ManagerID, leasehold.Term) { return m.leader, m.leaderTerm }

// Stale reports whether no leader is known.
func (m *Machine) Stale(now mono.Instant) bool {
	if m.leading {
		return now >= m.until
	}
	return m.leader == "" || now >= m.hintAt.Add(m.cfg.Fade)
}

// Drift returns the bound on the ratio of clock rates.
func (m *Machine) Drift() mono.Drift { return m.cfg.Drift }

// Leads reports whether this manager may act as leader at now.
func (m *Machine) Leads(now mono.Instant) bool { return m.leading && now < m.until }

// StepLease handles an event of the lease at now. It returns the actions, in order, and the latest time
// for the next Advance.
func (m *Machine) StepLease(now mono.Instant, e Event) ([]byrecord.Action, mono.Instant) {
	m.out = m.out[:0]
	switch e := e.(type) {
	case Appointed:
		m.appointed(now, e)
	case Extended:
		m.extended(now, e)
	case Dismissed:
		m.dismissed()
	case Leads:
		m.leads(now, e)
	}
	return m.finish(now)
}

// Step handles the events of package byrecord that apply here too: Slept, Resign, Deposed and
// Outranked. The lease decides which manager leads, not the terms that peers have received; but a
// peer with a higher term rejects this leader's messages. If the higher term is credible
// (claims.go), the machine releases the lease, for one with a higher fence.
func (m *Machine) Step(now mono.Instant, e byrecord.Event) ([]byrecord.Action, mono.Instant) {
	m.out = m.out[:0]
	switch e := e.(type) {
	case byrecord.Slept:
		m.emit(byrecord.Note{What: byrecord.NoteSlept, Term: m.term})
		m.stepDown(0)
	case byrecord.Deposed:
		if e.By > m.term {
			m.emit(byrecord.Note{What: byrecord.NoteDeposed, Term: e.By, OwnTerm: m.term})
			m.stepDown(0)
		}
	case byrecord.Outranked:
		if m.leading && e.By > m.term && m.credible(now, e) {
			m.emit(byrecord.Note{What: byrecord.NoteOutranked, Term: e.By, OwnTerm: m.term})
			m.stepDown(e.By)
		}
	case byrecord.Resign:
		m.resign()
	}
	return m.finish(now)
}

// Advance handles the passing of time.
func (m *Machine) Advance(now mono.Instant) ([]byrecord.Action, mono.Instant) {
	m.out = m.out[:0]
	return m.finish(now)
}

func (m *Machine) finish(now mono.Instant) ([]byrecord.Action, mono.Instant) {
	if m.leading && !m.lapsed && now >= m.until {
		m.lapsed = true
		m.emit(byrecord.Note{What: byrecord.NoteLapsed, Elapsed: now.Sub(m.until)})
	}
	if m.resigning && !m.held && !m.resigned {
		m.resigned = true
		m.emit(byrecord.Resigned{})
	}
	switch fades := m.hintAt.Add(m.cfg.Fade); {
	case m.leading && !m.lapsed:
		return m.out, m.until
	case !m.leading && m.leader != "" && now < fades:
		return m.out, fades // so that the shell observes the change of Stale
	}
	return m.out, mono.Never
}

func (m *Machine) emit(a byrecord.Action) { m.out = append(m.out, a) }

// appointed begins a term, unless this manager has led in it before.
func (m *Machine) appointed(now mono.Instant, e Appointed) {
	m.held = true
	m.claims.leaderKnown(now)
	if e.Term <= m.term || m.resigning {
		return
	}
	m.stepDown(0)
	m.term, m.until, m.leading, m.lapsed = e.Term, e.Until, true, now >= e.Until
	m.leader, m.leaderTerm = m.cfg.Self, e.Term
	m.emit(byrecord.Note{What: byrecord.NoteElected, Term: e.Term})
	m.emit(byrecord.Lead{Term: e.Term, Until: e.Until})
}

func (m *Machine) extended(now mono.Instant, e Extended) {
	if !m.leading || e.Term != m.term || e.Until <= m.until {
		return
	}
	if m.lapsed && now < e.Until {
		m.emit(byrecord.Note{What: byrecord.NoteRegained})
	}
	m.until, m.lapsed = e.Until, now >= e.Until
	m.emit(byrecord.Extend{Until: e.Until})
}

func (m *Machine) dismissed() {
	m.held = false
	if m.leading {
		m.emit(byrecord.Note{What: byrecord.NoteDismissed, Term: m.term})
		m.stepDown(0)
	}
}

// leads records the hint of a leader. Hints about older terms are ignored, and all hints while this
// manager leads.
func (m *Machine) leads(now mono.Instant, e Leads) {
	if e.Term < m.leaderTerm || m.leading {
		return
	}
	if e.Manager != "" && e.Manager != m.cfg.Self {
		m.claims.leaderKnown(now)
	}
	m.leader, m.leaderTerm, m.hintAt = e.Manager, e.Term, now
	if e.Manager == m.cfg.Self {
		m.leader = ""
	}
}

// stepDown stops leading. The next term must be above the given one.
func (m *Machine) stepDown(above leasehold.Term) {
	if !m.leading {
		return
	}
	m.leading, m.lapsed = false, false
	m.leader = ""
	m.emit(byrecord.StepDown{Above: above})
}

// resign stops leading at once. The resignation is complete when the lease has ended.
func (m *Machine) resign() {
	if m.resigning {
		return
	}
	m.resigning = true
	if m.leading {
		m.emit(byrecord.Note{What: byrecord.NoteResigning, Term: m.term})
	}
	m.stepDown(0)
}
