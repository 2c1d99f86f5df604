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

// Config configures a lookup.
type Config struct {
	Namespace leasehold.Namespace
	ID        uint64 // identifies the lookup among those that are connected to one manager
	Limits    protocol.Limits
	// Managers are the receivers of requests; see target. If there are none, the shell chooses:
	// Send.To is the manager that replied last, or empty.
	Managers []storage.ManagerID
	// Resolving is set if Managers is incomplete until the first Managers event.
	Resolving bool

	// Poll is the interval of requests. Changes are broadcast; the reply to a request proves that
	// none was missed. Default 5 s.
	Poll time.Duration
	// Stale is the maximum age of that proof before contact is lost. It is at least three polls, so
	// that one lost message raises no false alarm. Default 30 s.
	Stale time.Duration
	// ConservativeRecovery reports the whole key space as lost when contact is
	// lost, and again every Stale until it is restored: the conservative recovery
	// notifications of PRS.
	ConservativeRecovery bool
	// Retry is the timeout of a request. The retry goes to all managers. It doubles up to
	// Poll. Default 500 ms.
	Retry time.Duration

	// Rand draws jitter.
	Rand *rand.Rand
	// Beats are the instants of regular polls; see [mono.Beats].
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

	seq       protocol.Seq
	sentAt    mono.Instant
	nextSend  mono.Instant
	awaiting  bool
	sendAgain bool // send another request after the reply to the outstanding one
	misses    int
	// redirected: the lookup has followed a hint since the last miss.
	redirected bool
	// spread: the next request is delayed at random, because many lookups may send one at the same time.
	spread bool

	term   leasehold.Term
	leader storage.ManagerID // empty: requests go to all managers
	silent storage.ManagerID // the leader that did not reply to the last request

	table *table.Table // immutable; nil until the first snapshot
	mixed bool         // changes do not apply to the table: request a snapshot
	// fresh is when the table last contained all committed changes.
	fresh mono.Instant
	// lost: contact is lost, and some losses may be unknown.
	lost bool
	// reported is when the whole key space was last reported as lost.
	reported mono.Instant
	// ageUnknown: no manager has replied yet, or none since the clock stood still.
	ageUnknown bool
}

// New returns a lookup without a table that sends a request at once.
func New(now mono.Instant, cfg Config) (*Machine, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Machine{cfg: cfg, target: newTarget(cfg.Managers, cfg.Stale/3, cfg.Rand), nextSend: now, fresh: now, ageUnknown: true}, nil
}

// Table returns the last published table, nil if there is none yet.
func (m *Machine) Table() *table.Table { return m.table }

// LSN returns the LSN of the table, 0 if there is none yet.
func (m *Machine) LSN() leasehold.LSN {
	if m.table == nil {
		return 0
	}
	return m.table.LSN()
}

// Term returns the highest term in a reply.
func (m *Machine) Term() leasehold.Term { return m.term }

// Age returns the time since the table contained all committed changes, on the lookup's clock. It reports
// false if there is no table or the age is unknown.
func (m *Machine) Age(now mono.Instant) (time.Duration, bool) {
	return now.Sub(m.fresh), m.table != nil && !m.ageUnknown
}

// Step handles deadlines up to now and then the event. It returns the actions in order, and
// the latest instant for the next call of Advance.
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
			m.sendAgain = true // it is no evidence that managers reply: keep the backoff
		} else {
			m.sendSoon(now)
		}
	case Managers:
		if m.cfg.Resolving {
			m.complete(now, e.All)
		} else {
			m.target.replace(e.All)
		}
	}
	return m.finish(now)
}

// Advance handles deadlines up to now.
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

// contactDue is when contact is lost unless a manager replies before. With ConservativeRecovery it
// is also when the whole key space is reported as lost again.
func (m *Machine) contactDue() mono.Instant {
	switch {
	case !m.lost:
		return m.fresh.Add(m.cfg.Stale)
	case m.cfg.ConservativeRecovery:
		return m.reported.Add(m.cfg.Stale)
	}
	return mono.Never
}

// checkContact emits the loss of contact when the table is too old. That is not a loss of state: the changes
// or the snapshot in the next reply contain all losses in between.
func (m *Machine) checkContact(now mono.Instant) {
	if m.table == nil || now < m.contactDue() {
		return
	}
	m.emit(Note{What: NoteContactLost, Age: now.Sub(m.fresh), MaxAge: m.cfg.Stale})
	if !m.lost {
		m.lost = true
		m.emit(Contact{Lost: true, Age: now.Sub(m.fresh)})
	}
	if m.cfg.ConservativeRecovery {
		m.reported = now
		m.emit(Losses{[]leasehold.Loss{{Range: leasehold.All, Cause: leasehold.CauseContact, LSN: m.table.LSN()}}})
	}
}

// complete handles the first complete list of managers. A machine without a table sends a request at once, unless
// a manager has one.
func (m *Machine) complete(now mono.Instant, managers []storage.ManagerID) {
	m.cfg.Resolving = false
	m.target.complete(managers)
	if m.table == nil && (!m.awaiting || m.target.request == nil) {
		m.awaiting, m.misses, m.nextSend = false, 0, now
	}
}

// slept loses contact, because it is unknown for how long the clock stood still, and sends a new
// request: the reply to an outstanding one may be arbitrarily old.
func (m *Machine) slept(now mono.Instant) {
	m.emit(Note{What: NoteSlept})
	m.ageUnknown = true
	m.fresh, m.reported = now.Add(-m.cfg.Stale), now.Add(-m.cfg.Stale)
	m.checkContact(now)
	m.nextSend = now
	m.awaiting = false
}

// refused schedules the next request after a wait: the manager is reachable, so a quick retry does not help.
func (m *Machine) refused(now mono.Instant, why leasehold.Kind) {
	m.emit(Note{What: NoteRefused, Kind: why})
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
			m.emit(Note{What: NoteLeaderSilent, Misses: m.misses})
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
	if len(m.target.managers) > 0 {
		to = m.target.choose(to, r)
	}
	m.emit(Send{to, r})
}

// failed passes the request on if the manager that has it has failed. It reports whether the request is still
// pending at some manager.
func (m *Machine) failed(from storage.ManagerID) (pending bool) {
	if len(m.target.managers) == 0 {
		return false
	}
	passed, pending := m.target.failed(from)
	if passed {
		m.emit(Send{m.target.current, m.target.request})
	}
	if !pending && !m.cfg.Resolving {
		m.emit(Unanswered{})
	}
	return pending
}

// jitter reduces d by up to an eighth, so that lookups do not send at the same time.
func (m *Machine) jitter(d time.Duration) time.Duration {
	return d - time.Duration(m.cfg.Rand.Int64N(int64(d/8)+1))
}

// sendSoon schedules a request for now or, if one is outstanding, for the time of its reply: that reply may be
// older than the reason for the new request. If the outstanding request has timed out before, a message of the leader
// shows that it is alive and will not reply. Then the lookup does not wait for the rest of its backoff. It sends
// after a random part of Retry, because many lookups may have received the same broadcast.
func (m *Machine) sendSoon(now mono.Instant) {
	switch {
	case !m.awaiting && m.spread && m.nextSend > now:
	case !m.awaiting:
		m.nextSend = now
	case m.misses == 0:
		m.sendAgain = true
	default:
		m.awaiting, m.misses, m.spread = false, 0, true
		m.nextSend = min(m.nextSend, now.Add(time.Duration(m.cfg.Rand.Int64N(int64(m.cfg.Retry)))))
	}
}

// redirect follows the hint of a manager to the leader, once after each timeout: managers may name each other,
// or a leader that has just not replied.
func (m *Machine) redirect(now mono.Instant, n protocol.NotLeader) (followed bool) {
	if n.Validate() != nil {
		m.emit(Note{What: NoteBadMessage, Term: n.Term})
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
		m.emit(Note{What: NoteBadMessage, LSN: r.LSN})
		return
	case r.Namespace != m.cfg.Namespace:
		m.emit(Note{What: NoteForeign})
		return
	case r.Term < m.term:
		m.emit(Note{What: NoteStaleTerm, Term: r.Term, OwnTerm: m.term})
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
		m.applySnapshot(r.Snapshot)
	case len(r.Changes) > 0:
		m.applyChanges(now, r)
	case r.Crossing != nil:
		m.applyCrossing(now, r.Crossing)
	}
	if r.Snapshot == nil && len(r.Changes) == 0 && r.Echo == 0 && r.LSN > m.LSN() {
		m.sendSoon(now) // the manager has changes that it does not broadcast
	}
	if r.Echo == m.seq {
		m.answered(now, r)
	}
}

// answered handles the reply to the newest request. If the table is at the LSN of the reply, it contains all
// changes that were committed r.Age before the request was sent.
func (m *Machine) answered(now mono.Instant, r *protocol.LookupReply) {
	m.awaiting, m.redirected = false, false
	m.misses = 0
	poll := m.cfg.Beats.Last(m.sentAt.Add(m.jitter(m.cfg.Poll)), m.cfg.Poll)
	switch {
	case m.sendAgain:
		m.sendAgain = false
		m.nextSend = now
	case m.spread: // the reply may be older than the reason for the scheduled request
		m.nextSend = min(m.nextSend, poll)
	default:
		m.nextSend = poll
	}
	if m.table == nil && r.LSN == 0 {
		m.applySnapshot(table.New()) // the leader's table is empty
	}
	if m.table == nil || m.mixed || m.LSN() < r.LSN {
		if r.Snapshot == nil { // another snapshot would be no newer
			m.nextSend = now
		}
		return
	}
	known, age := m.sentAt.Add(-r.Age), now.Sub(m.fresh)
	if m.ageUnknown || known > m.fresh {
		m.fresh, m.ageUnknown = known, false
	}
	if m.lost && now < m.fresh.Add(m.cfg.Stale) {
		m.lost = false
		m.emit(Note{What: NoteContactBack, Age: age})
		m.emit(Contact{Age: age})
	}
}

// applyChanges applies changes in order.
func (m *Machine) applyChanges(now mono.Instant, r *protocol.LookupReply) {
	if m.table == nil || m.mixed {
		return // a snapshot is requested
	}
	at := m.table.LSN()
	if r.From > at {
		m.emit(Note{What: NoteGap, LSN: r.From, OwnLSN: at})
		m.sendSoon(now)
		return
	}
	if r.LSN <= at {
		return
	}
	if r.From < at {
		m.emit(Note{What: NoteOverlap, LSN: r.From, OwnLSN: at})
	}
	next := m.table.Clone()
	var losses []leasehold.Loss
	for i := range r.Changes {
		c := &r.Changes[i]
		if c.LSN <= at {
			continue
		}
		if err := next.Apply(c); err != nil {
			m.emit(Note{What: NoteMixed, LSN: c.LSN, OwnLSN: at})
			m.mixed = true
			m.sendSoon(now)
			return
		}
		if loss, lost := c.Loss(); lost {
			losses = append(losses, loss)
		}
	}
	m.publish(next, r.Changes[at-r.From:], losses)
}

// applyCrossing continues after a gap in the LSNs if the table is the last one before it.
func (m *Machine) applyCrossing(now mono.Instant, c *table.Crossing) {
	if m.table == nil || m.mixed || m.table.LSN() != c.Gap.After {
		return
	}
	next, err := m.table.Cross(c)
	if err != nil {
		m.emit(Note{What: NoteMixed, LSN: c.Gap.Base, OwnLSN: m.table.LSN()})
		m.mixed = true
		m.sendSoon(now)
		return
	}
	m.table = next
	m.emit(Publish{Table: next, Crossing: c})
}

// applySnapshot replaces the table by a snapshot, and emits the losses in between.
func (m *Machine) applySnapshot(s *table.Table) {
	if m.table == nil {
		m.publish(s, nil, nil)
		return
	}
	if m.mixed && s.LSN() == m.table.LSN() {
		m.mixed = false // the table is correct, and the changes were not
		return
	}
	if s.LSN() <= m.table.LSN() {
		m.emit(Note{What: NoteOldSnapshot, LSN: s.LSN(), OwnLSN: m.table.LSN()})
		return
	}
	m.emit(Note{What: NoteSnapshot, LSN: s.LSN(), OwnLSN: m.table.LSN()})
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
