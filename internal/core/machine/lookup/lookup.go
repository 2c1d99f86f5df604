package lookup

import (
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// Config is what a lookup is told when it starts.
type Config struct {
	Namespace leasehold.Namespace
	ID        uint64 // names the lookup among those that one manager talks to
	Limits    protocol.Limits
	// Managers are those that may get a request; see target. If there are none, the choice is the
	// shell's: Send.To is the manager that answered last, or empty.
	Managers []storage.ManagerID

	// Poll is how often to ask. Changes arrive unasked; asking proves that
	// none was missed. Default 5 s.
	Poll time.Duration
	// Stale is how old that proof may become before contact counts as lost: at
	// least three polls, or one lost message raises a false alarm. Default 30 s.
	Stale time.Duration
	// ConservativeRecovery reports the whole key space as lost when contact is
	// lost, and again every Stale until it is restored: the conservative recovery
	// notifications of PRS.
	ConservativeRecovery bool
	// Retry is how long to wait for an answer before asking all managers.
	// Default 500 ms; it doubles up to Poll.
	Retry time.Duration

	// Rand draws jitter.
	Rand *rand.Rand
	// Beats are when to ask, if there is nothing to hurry for.
	Beats mono.Beats
}

func (c *Config) validate() error {
	if err := c.Namespace.Validate(); err != nil {
		return err
	}
	if c.Limits == (protocol.Limits{}) {
		c.Limits = protocol.DefaultLimits
	}
	for _, d := range []struct {
		field *time.Duration
		usual time.Duration
	}{{&c.Poll, 5 * time.Second}, {&c.Stale, 30 * time.Second}, {&c.Retry, 500 * time.Millisecond}} {
		if *d.field == 0 {
			*d.field = d.usual
		}
	}
	switch {
	case c.Rand == nil:
		return leasehold.Errorf("lookup", leasehold.ErrInvalid, string(c.Namespace), "Rand must be set")
	case c.Retry < 0 || c.Poll < c.Retry || c.Stale < 3*c.Poll:
		return leasehold.Errorf("lookup", leasehold.ErrInvalid, string(c.Namespace),
			"retry %v, poll %v and stale %v: want retry <= poll and at least three polls in stale", c.Retry, c.Poll, c.Stale)
	}
	return nil
}

// A Machine is one lookup. It is not safe for concurrent use. The actions that
// Step and Advance return are valid until the next call.
type Machine struct {
	cfg    Config
	out    []Action
	target target

	seq      protocol.Seq
	sentAt   mono.Instant
	nextSend mono.Instant
	awaiting bool
	again    bool // ask once more when our request has been answered
	misses   int
	// redirected: since the last miss a hint has been followed.
	redirected bool
	// spread: the next request was put off, because many lookups may ask at the same time.
	spread bool

	term   leasehold.Term
	leader storage.ManagerID // empty: ask everyone
	silent storage.ManagerID // who has just not answered

	table *table.Table // immutable; nil until the first snapshot
	mixed bool         // our table cannot be continued: ask for a snapshot
	// fresh is when we last knew everything that had been committed.
	fresh mono.Instant
	// lost: contact is lost. Losses may have happened that we have not learned of.
	lost bool
	// reported is when we last reported the whole key space as lost.
	reported mono.Instant
	// unsure: nobody has answered yet, or not since our clock stood still.
	unsure bool
}

// New returns a lookup that knows nothing and asks at once.
func New(now mono.Instant, cfg Config) (*Machine, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Machine{cfg: cfg, target: newTarget(cfg.Managers, cfg.Stale/3, cfg.Rand), nextSend: now, fresh: now, unsure: true}, nil
}

// Table returns the table last published; nil if there is none yet.
func (m *Machine) Table() *table.Table { return m.table }

// LSN returns the LSN of the table, 0 if there is none yet.
func (m *Machine) LSN() leasehold.LSN {
	if m.table == nil {
		return 0
	}
	return m.table.LSN()
}

// Term returns the newest term of a leader that the lookup has heard of.
func (m *Machine) Term() leasehold.Term { return m.term }

// Age returns how long ago, on our clock, the table had everything that had
// been committed. It reports false if there is no table or no way to tell.
func (m *Machine) Age(now mono.Instant) (time.Duration, bool) {
	return now.Sub(m.fresh), m.table != nil && !m.unsure
}

// Step handles an event that happened at now, and all time that has passed.
// It returns what to do, in order, and when to call Advance at the latest.
func (m *Machine) Step(now mono.Instant, e Event) ([]Action, mono.Instant) {
	m.out = m.out[:0]
	m.checkContact(now)
	switch e := e.(type) {
	case Reply:
		m.reply(now, e.LookupReply)
	case Redirect:
		if !m.redirect(now, e.NotLeader) {
			m.failed(e.From)
		}
	case Refused:
		if !m.failed(e.From) {
			m.refused(now, e.Kind)
		}
	case Failed:
		m.failed(e.From)
	case Slept:
		m.slept(now)
	case Refresh:
		if m.awaiting && m.misses > 0 {
			m.again = true // a caller says nothing about managers: the backoff goes on
		} else {
			m.soon(now)
		}
	}
	return m.finish(now)
}

// Advance handles the passing of time.
func (m *Machine) Advance(now mono.Instant) ([]Action, mono.Instant) {
	m.out = m.out[:0]
	m.checkContact(now)
	return m.finish(now)
}

func (m *Machine) finish(now mono.Instant) ([]Action, mono.Instant) {
	if now >= m.nextSend {
		m.send(now)
	}
	wake := m.nextSend
	if m.table != nil {
		wake = min(wake, m.contactDue())
	}
	return m.out, wake
}

func (m *Machine) emit(a Action) { m.out = append(m.out, a) }

func (m *Machine) note(what Notable, have, want uint64) { m.emit(Note{what, have, want}) }

// contactDue is when contact is lost, unless a manager answers before. With
// ConservativeRecovery it is also when everything is reported as lost once more.
func (m *Machine) contactDue() mono.Instant {
	switch {
	case !m.lost:
		return m.fresh.Add(m.cfg.Stale)
	case m.cfg.ConservativeRecovery:
		return m.reported.Add(m.cfg.Stale)
	}
	return mono.Never
}

// checkContact notices that our knowledge is too old. Nothing counts as lost for
// that: whatever is lost meanwhile is learned from the changes or the table that a
// manager sends when it answers again.
func (m *Machine) checkContact(now mono.Instant) {
	if m.table == nil || now < m.contactDue() {
		return
	}
	m.note(NoteContactLost, uint64(now.Sub(m.fresh)), uint64(m.cfg.Stale))
	if !m.lost {
		m.lost = true
		m.emit(Contact{Lost: true, Age: now.Sub(m.fresh)})
	}
	if m.cfg.ConservativeRecovery {
		m.reported = now
		m.emit(Losses{[]leasehold.Loss{{Range: leasehold.All, Cause: leasehold.CauseContact, LSN: m.table.LSN()}}})
	}
}

// slept loses contact, since we cannot tell for how long our clock stood still, and
// asks anew: an answer under way may be arbitrarily old.
func (m *Machine) slept(now mono.Instant) {
	m.note(NoteSlept, 0, 0)
	m.unsure = true
	m.fresh, m.reported = now.Add(-m.cfg.Stale), now.Add(-m.cfg.Stale)
	m.checkContact(now)
	m.nextSend = now
	m.awaiting = false
}

// refused waits before it asks again: whoever refuses has heard us.
func (m *Machine) refused(now mono.Instant, why leasehold.Kind) {
	m.note(NoteRefused, uint64(why), 0)
	m.awaiting, m.redirected = false, false
	m.misses = 0
	m.leader = ""
	m.nextSend = now.Add(m.jitter(m.cfg.Poll))
}

func (m *Machine) send(now mono.Instant) {
	if m.awaiting {
		m.misses++
		m.redirected = false
		if m.leader != "" {
			m.note(NoteLeaderSilent, uint64(m.misses), 0)
		}
		m.silent, m.leader = m.leader, ""
	}
	m.seq++
	m.sentAt = now
	m.awaiting, m.spread = true, false
	m.nextSend = now.Add(m.jitter(min(m.cfg.Retry<<min(m.misses, 6), m.cfg.Poll)))
	r := &protocol.LookupRequest{Namespace: m.cfg.Namespace, Lookup: m.cfg.ID, Seq: m.seq, Term: m.term, Crosses: true}
	if !m.mixed {
		r.LSN = m.LSN()
	}
	to := m.leader
	if len(m.cfg.Managers) > 0 {
		to = m.target.choose(to, r)
	}
	m.emit(Send{to, r})
}

// failed passes the request on if the manager that has it has failed. It reports whether the request is still
// pending at some manager.
func (m *Machine) failed(from storage.ManagerID) (pending bool) {
	if len(m.cfg.Managers) == 0 {
		return false
	}
	passed, pending := m.target.failed(from)
	if passed {
		m.emit(Send{m.target.current, m.target.request})
	}
	if !pending {
		m.emit(Unanswered{})
	}
	return pending
}

// jitter takes up to an eighth off d, so that lookups do not march in step.
func (m *Machine) jitter(d time.Duration) time.Duration {
	return d - time.Duration(m.cfg.Rand.Int64N(int64(d/8)+1))
}

// soon asks at once, or if a request is under way, when it has been answered:
// the answer may be older than the reason to ask. If that request is overdue, a leader
// that speaks now has not answered it, and will not. Then it does not wait for all of its
// backoff, but asks within Retry: many lookups may be told at the same time.
func (m *Machine) soon(now mono.Instant) {
	switch {
	case !m.awaiting && m.spread && m.nextSend > now:
	case !m.awaiting:
		m.nextSend = now
	case m.misses == 0:
		m.again = true
	default:
		m.awaiting, m.misses, m.spread = false, 0, true
		m.nextSend = min(m.nextSend, now.Add(time.Duration(m.cfg.Rand.Int64N(int64(m.cfg.Retry)))))
	}
}

// redirect follows a hint, once for every time that nobody answered: managers
// may point at each other, or at one that has just been silent.
func (m *Machine) redirect(now mono.Instant, n protocol.NotLeader) (followed bool) {
	if n.Validate() != nil {
		m.note(NoteBadMessage, uint64(n.Term), 0)
		return false
	}
	served := !m.awaiting || m.misses == 0
	news := n.Leader != "" && n.Leader != m.leader && n.Leader != m.silent && n.Term >= m.term
	if served || !news || m.redirected {
		return false
	}
	m.redirected = true
	m.leader = n.Leader
	m.awaiting = false
	m.nextSend = now
	return true
}

func (m *Machine) reply(now mono.Instant, r *protocol.LookupReply) {
	switch {
	case r.Validate(m.cfg.Limits) != nil:
		m.note(NoteBadMessage, uint64(r.LSN), 0)
		return
	case r.Namespace != m.cfg.Namespace:
		m.note(NoteForeign, 0, 0)
		return
	case r.Term < m.term:
		m.note(NoteStaleTerm, uint64(r.Term), uint64(m.term))
		if r.Echo == m.seq {
			m.failed(r.Leader)
		}
		return
	}
	m.term, m.leader = r.Term, r.Leader
	if m.target.request != nil && r.Echo == m.target.request.Seq && m.target.answered(r) {
		m.emit(Send{m.target.current, m.target.request})
	}
	switch {
	case r.Snapshot != nil:
		m.replace(r.Snapshot)
	case len(r.Changes) > 0:
		m.follow(now, r)
	case r.Crossing != nil:
		m.cross(now, r.Crossing)
	}
	if r.Snapshot == nil && len(r.Changes) == 0 && r.Echo == 0 && r.LSN > m.LSN() {
		m.soon(now) // there is more to know than the manager wants to say unasked
	}
	if r.Echo == m.seq {
		m.answered(now, r)
	}
}

// answered notes that our newest request was: then we know everything that was
// committed before we sent it, if we have caught up with the answer, and but
// for what the leader itself does not know.
func (m *Machine) answered(now mono.Instant, r *protocol.LookupReply) {
	m.awaiting, m.redirected = false, false
	m.misses = 0
	m.nextSend = m.cfg.Beats.Last(m.sentAt.Add(m.jitter(m.cfg.Poll)), m.cfg.Poll)
	if m.again {
		m.again = false
		m.nextSend = now
	}
	if m.table == nil && r.LSN == 0 {
		m.replace(table.New()) // the leader's table is empty, and so is ours
	}
	if m.table == nil || m.mixed || m.LSN() < r.LSN {
		if r.Snapshot == nil { // to ask for another brings nothing that this one has not
			m.nextSend = now
		}
		return
	}
	known, age := m.sentAt.Add(-r.Age), now.Sub(m.fresh)
	if m.unsure || known > m.fresh {
		m.fresh, m.unsure = known, false
	}
	if m.lost && now < m.fresh.Add(m.cfg.Stale) {
		m.lost = false
		m.note(NoteContactBack, uint64(age), 0)
		m.emit(Contact{Age: age})
	}
}

// follow applies changes in order.
func (m *Machine) follow(now mono.Instant, r *protocol.LookupReply) {
	if m.table == nil || m.mixed {
		return // a snapshot has been asked for
	}
	at := m.table.LSN()
	if r.From > at {
		m.note(NoteGap, uint64(r.From), uint64(at))
		m.soon(now)
		return
	}
	if r.LSN <= at {
		return
	}
	if r.From < at {
		m.note(NoteOverlap, uint64(r.From), uint64(at))
	}
	next := m.table.Clone()
	var losses []leasehold.Loss
	for i := range r.Changes {
		c := &r.Changes[i]
		if c.LSN <= at {
			continue
		}
		if err := next.Apply(c); err != nil {
			m.note(NoteMixed, uint64(c.LSN), uint64(at))
			m.mixed = true
			m.soon(now)
			return
		}
		if loss, lost := c.Loss(); lost {
			losses = append(losses, loss)
		}
	}
	m.publish(next, r.Changes[at-r.From:], losses)
}

// cross continues at the other end of a gap in the LSNs, if our table is the one before it.
func (m *Machine) cross(now mono.Instant, c *table.Crossing) {
	if m.table == nil || m.mixed || m.table.LSN() != c.Gap.After {
		return
	}
	next, err := m.table.Cross(c)
	if err != nil {
		m.note(NoteMixed, uint64(c.Gap.Base), uint64(m.table.LSN()))
		m.mixed = true
		m.soon(now)
		return
	}
	m.table = next
	m.emit(Publish{Table: next, Crossing: c})
}

// replace takes over a snapshot, and finds what was lost since our table.
func (m *Machine) replace(s *table.Table) {
	if m.table == nil {
		m.publish(s, nil, nil)
		return
	}
	if m.mixed && s.LSN() == m.table.LSN() {
		m.mixed = false // our table is right: it was the message that was not
		return
	}
	if s.LSN() <= m.table.LSN() {
		m.note(NoteOldSnapshot, uint64(s.LSN()), uint64(m.table.LSN()))
		return
	}
	m.note(NoteSnapshot, uint64(s.LSN()), uint64(m.table.LSN()))
	m.mixed = false
	m.publish(s, nil, missed(m.table, s))
}

// missed returns the losses that happened after old and up to s.
func missed(old, s *table.Table) []leasehold.Loss {
	var losses []leasehold.Loss
	for r, e := range keyrange.Zip(old.Entries(), s.Entries()) {
		if !s.Missed(e.B, e.A, old.LSN()) {
			continue
		}
		loss := leasehold.Loss{Range: r, Generation: e.A.Generation, LSN: e.B.Lost}
		if !e.A.Vacant() {
			loss.Owner = e.A.Holder.Owner
		}
		losses = append(losses, loss)
	}
	return losses
}

func (m *Machine) publish(t *table.Table, changes []table.Change, losses []leasehold.Loss) {
	m.table = t
	m.emit(Publish{Table: t, Changes: changes})
	if len(losses) > 0 {
		m.emit(Losses{losses})
	}
}
