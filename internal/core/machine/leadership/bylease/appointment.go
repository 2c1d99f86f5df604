// Package appointment is the machine of a manager's leadership where managers
// agree among themselves who leads: by a lease of package flease, and not by a
// record in a store.
//
// # DESIGN
//
// It stands where package election stands, and says the same: that we lead, for
// how long, and that we no longer do. The lease decides; what is left to do is to
// see to it that a term is led once. A term is the fence of a lease, and rises
// from lease to lease. What a leader said in a term it may have forgotten when it
// has stepped down, and its numbers must not be used again. So whoever steps down
// before the lease has ended does not come back under it: the shell gives it up,
// and the next one has a higher term.
package bylease

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// An Event is something that happens to the lease that leadership is.
type Event interface{ appointmentEvent() }

type (
	// Appointed says that we have the lease, with a new fence, until Until.
	Appointed struct {
		Term  leasehold.Term
		Until mono.Instant
	}
	// Extended says that we have it for longer.
	Extended struct {
		Term  leasehold.Term
		Until mono.Instant
	}
	// Dismissed says that we do not have the lease: it ended, or was given up.
	Dismissed struct{}
	// Leads says who seems to have it, "" if nobody does. It is a hint.
	Leads struct {
		Manager storage.ManagerID
		Term    leasehold.Term
	}
)

func (Appointed) appointmentEvent() {}
func (Extended) appointmentEvent()  {}
func (Dismissed) appointmentEvent() {}
func (Leads) appointmentEvent()     {}

// Config is what a manager knows about its group.
type Config struct {
	Self storage.ManagerID
	// Drift bounds how clocks differ in rate. Default 1.20.
	Drift mono.Drift
	// Fade is for how long it is believed that someone leads who is not heard of
	// again. Default 3 s.
	Fade time.Duration
	// Remember is for how long after we first knew of a leader an owner may be right that has
	// heard of a higher term: owners that live have come back by then. Default 5 min.
	Remember time.Duration
}

// A Machine is one manager's leadership. It is not safe for concurrent use. The
// actions that Step, Hear and Advance return are valid until the next call. They
// are those of package election: Lead, Extend, StepDown, Resigned and Note. The
// shell gives the lease up when it has been told to step down.
type Machine struct {
	cfg Config
	out []byrecord.Action

	term    leasehold.Term // the newest that we led in
	leading bool
	until   mono.Instant
	lapsed  bool

	leader     storage.ManagerID // as far as we know
	leaderTerm leasehold.Term
	heardAt    mono.Instant // of it, if that is not us

	claims claims

	held                bool // we have the lease, whether or not we lead by it
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

// Leader returns who leads and in which term, as far as we know.
func (m *Machine) Leader() (storage.ManagerID, leasehold.Term) { return m.leader, m.leaderTerm }

// Stale reports whether nobody is known to lead.
func (m *Machine) Stale(now mono.Instant) bool {
	if m.leading {
		return now >= m.until
	}
	return m.leader == "" || now >= m.heardAt.Add(m.cfg.Fade)
}

// Drift returns the bound on how clocks differ in rate.
func (m *Machine) Drift() mono.Drift { return m.cfg.Drift }

// Leads reports whether we act as leader at now.
func (m *Machine) Leads(now mono.Instant) bool { return m.leading && now < m.until }

// Hear handles something that happened to the lease at now. It returns what to
// do, in order, and when to call Advance at the latest.
func (m *Machine) Hear(now mono.Instant, e Event) ([]byrecord.Action, mono.Instant) {
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

// Step handles those events of an election that concern us too: that our clock
// stood still, that we are to resign, that we are deposed, and that a peer has heard
// of a higher term. The lease decides who leads, not what peers have heard; but who
// has heard of a higher term does not listen to us. If that is credible (claims.go), the lease is
// given up, for one with a higher fence.
func (m *Machine) Step(now mono.Instant, e byrecord.Event) ([]byrecord.Action, mono.Instant) {
	m.out = m.out[:0]
	switch e := e.(type) {
	case byrecord.Slept:
		m.note(byrecord.NoteSlept, uint64(m.term), 0)
		m.stepDown(0)
	case byrecord.Deposed:
		if e.By > m.term {
			m.note(byrecord.NoteDeposed, uint64(e.By), uint64(m.term))
			m.stepDown(0)
		}
	case byrecord.Outranked:
		if m.leading && e.By > m.term && m.credible(now, e) {
			m.note(byrecord.NoteOutranked, uint64(e.By), uint64(m.term))
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
		m.note(byrecord.NoteLapsed, uint64(now), uint64(m.until))
	}
	if m.resigning && !m.held && !m.resigned {
		m.resigned = true
		m.emit(byrecord.Resigned{})
	}
	switch fades := m.heardAt.Add(m.cfg.Fade); {
	case m.leading && !m.lapsed:
		return m.out, m.until
	case !m.leading && m.leader != "" && now < fades:
		return m.out, fades // whoever asks whether somebody leads is to hear that
	}
	return m.out, mono.Never
}

func (m *Machine) emit(a byrecord.Action) { m.out = append(m.out, a) }

func (m *Machine) note(what byrecord.Notable, have, want uint64) {
	m.emit(byrecord.Note{What: what, Have: have, Want: want})
}

// appointed begins a term, unless it is one that we have led in before.
func (m *Machine) appointed(now mono.Instant, e Appointed) {
	m.held = true
	m.claims.met(now)
	if e.Term <= m.term || m.resigning {
		return
	}
	m.stepDown(0)
	m.term, m.until, m.leading, m.lapsed = e.Term, e.Until, true, now >= e.Until
	m.leader, m.leaderTerm = m.cfg.Self, e.Term
	m.note(byrecord.NoteElected, uint64(e.Term), 0)
	m.emit(byrecord.Lead{Term: e.Term, Until: e.Until})
}

func (m *Machine) extended(now mono.Instant, e Extended) {
	if !m.leading || e.Term != m.term || e.Until <= m.until {
		return
	}
	if m.lapsed && now < e.Until {
		m.note(byrecord.NoteRegained, 0, 0)
	}
	m.until, m.lapsed = e.Until, now >= e.Until
	m.emit(byrecord.Extend{Until: e.Until})
}

func (m *Machine) dismissed() {
	m.held = false
	if m.leading {
		m.note(byrecord.NoteDismissed, uint64(m.term), 0)
		m.stepDown(0)
	}
}

// leads remembers who leads. What is known about an older term is no news, and
// about ourselves we know better.
func (m *Machine) leads(now mono.Instant, e Leads) {
	if e.Term < m.leaderTerm || m.leading {
		return
	}
	if e.Manager != "" && e.Manager != m.cfg.Self {
		m.claims.met(now)
	}
	m.leader, m.leaderTerm, m.heardAt = e.Manager, e.Term, now
	if e.Manager == m.cfg.Self {
		m.leader = ""
	}
}

// stepDown leads no more. The next term is to be above a given one.
func (m *Machine) stepDown(above leasehold.Term) {
	if !m.leading {
		return
	}
	m.leading, m.lapsed = false, false
	m.leader = ""
	m.emit(byrecord.StepDown{Above: above})
}

// resign stops leading at once. It is done when the lease is given up.
func (m *Machine) resign() {
	if m.resigning {
		return
	}
	m.resigning = true
	if m.leading {
		m.note(byrecord.NoteResigning, uint64(m.term), 0)
	}
	m.stepDown(0)
}
