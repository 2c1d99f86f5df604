package owner

import (
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/mono"
	"github.com/leasehold-dev/leasehold/internal/protocol"
	"github.com/leasehold-dev/leasehold/internal/storage"
	"github.com/leasehold-dev/leasehold/internal/table"
)

// Config is what an owner is told when it starts.
type Config struct {
	Namespace leasehold.Namespace
	Holder    *table.Holder // who we are; immutable
	Limits    protocol.Limits
	// Mover is where we take in state that moves to us; empty if we cannot move
	// any, in or out.
	Mover string
	// Promises says that others rely for a time on what was published, so that
	// a lease that has ended here must not be known to be free before they have
	// stopped. See [Settle].
	Promises bool

	// KeepSuspended bounds how long leases stay suspended, and with them the state of
	// the application. Default 0: until a leader answers or the process ends.
	KeepSuspended time.Duration

	// Retry is how long to wait for an answer before asking all managers, as
	// long as no leader has told us its timing. Default 500 ms.
	Retry time.Duration
	// Backoff bounds the random wait after two messages have crossed. Longer
	// than a round trip, or they will cross again; short against the lease, or
	// recalls take long. Default 200 ms.
	Backoff time.Duration

	// Rand draws backoffs. Owners must not share a seed.
	Rand *rand.Rand
	// Beats are when to renew.
	Beats mono.Beats
}

func (c *Config) validate() error {
	if err := c.Namespace.Validate(); err != nil {
		return err
	}
	if c.Holder == nil || c.Rand == nil {
		return leasehold.Errorf("owner", leasehold.ErrInvalid, string(c.Namespace), "Holder and Rand must be set")
	}
	if err := protocol.ValidateHolder(c.Holder); err != nil {
		return err
	}
	if c.Retry == 0 {
		c.Retry = 500 * time.Millisecond
	}
	if c.Backoff == 0 {
		c.Backoff = 200 * time.Millisecond
	}
	if c.Limits == (protocol.Limits{}) {
		c.Limits = protocol.DefaultLimits
	}
	if c.Retry < 0 || c.Backoff < 0 || c.KeepSuspended < 0 {
		return leasehold.Errorf("owner", leasehold.ErrInvalid, string(c.Holder.Owner),
			"retry %v, backoff %v and keep suspended %v must not be negative", c.Retry, c.Backoff, c.KeepSuspended)
	}
	return nil
}

// A Machine is one session of an owner. It is not safe for concurrent use.
// The actions that Step and Advance return are valid until the next call.
type Machine struct {
	cfg Config
	out []Action

	seq      protocol.Seq // our newest message
	sentAt   mono.Instant // when we sent it
	nextSend mono.Instant
	awaiting bool // our newest message has not been answered
	misses   int  // how many in a row were not
	// redirected: since the last miss a hint has been followed.
	redirected bool
	hinted     leasehold.Term // the newest term that a hint was about

	term    leasehold.Term
	heard   protocol.Seq
	applied protocol.Seq
	leader  storage.ManagerID // empty: ask everyone
	silent  storage.ManagerID // the last that did not answer
	timing  protocol.Timing   // zero until a leader told us

	// held is what we have as the leader sees it. The view has it less what may
	// not be served for a moment, because its state is about to go or to come.
	held []leasehold.Lease
	view *View
	// suspended: the deadline of the held leases has passed. Checks fail, but the leases
	// and the application's state are kept until a leader answers (see suspend.go).
	suspended bool
	claimed   bool // our newest request says so
	// resumedUpTo is the newest generation among the leases that were resumed.
	resumedUpTo leasehold.Generation
	newest      leasehold.Generation // newest generation ever installed

	rate        rateGuard
	quarantines int               // how often the clock was found too slow
	muteUntil   mono.Instant      // because it was
	gone        leasehold.Session // predecessor, proven dead
	// asked is the incumbent whose process we have asked the shell about.
	asked leasehold.Session

	departures []*departure
	arrivals   []*arrival
	contact    backing
	draining   bool // an operator wants us to hold nothing

	// eager: there is something to say as soon as our newest message is answered.
	// To speak before that would make the answer cross it.
	eager bool
	rtt   time.Duration // how long answers take, smoothed; 0 if unknown

	// settling numbers the views that have lost a lease; settled is the newest
	// of those on whose leases nobody relies any more.
	settling, settled uint64

	parting, parted bool
	leaving, left   bool
	leaveBy         mono.Instant // when to go without a goodbye; 0 if we have not said it
}

// New returns an owner that holds nothing and speaks at once.
func New(now mono.Instant, cfg Config) (*Machine, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Machine{cfg: cfg, view: &View{}, nextSend: now}, nil
}

// View returns the view last published.
func (m *Machine) View() *View { return m.view }

// Term returns the newest leader's term that the owner has heard of.
func (m *Machine) Term() leasehold.Term { return m.term }

// Step handles an event that happened at now, and all time that has passed.
// It returns what to do, in order, and when to call Advance at the latest.
func (m *Machine) Step(now mono.Instant, e Event) ([]Action, mono.Instant) {
	m.out = m.out[:0]
	m.expire(now)
	switch e := e.(type) {
	case Reply:
		m.reply(now, e.LeaseReply)
	case Redirect:
		m.redirect(now, e.NotLeader)
	case HungUp:
		m.hungUp(now, e.Manager)
	case Refused:
		m.refused(now, e.Kind)
	case Slept:
		m.slept(now)
	case PredecessorGone:
		m.predecessorGone(now, e.Session)
	case Part:
		m.part(now)
	case Leave:
		m.leave(now)
	case Copied:
		m.copied(e.Ticket)
	case Confirmed:
		m.confirmed(now, e.Ticket)
	case GaveUp:
		m.gaveUp(now, e.Ticket)
	case Imported:
		m.imported(now, e.Ticket)
	case Installed:
		m.installed(now, e)
	case Settled:
		m.settled = max(m.settled, min(e.Number, m.settling))
	}
	return m.finish(now)
}

// Advance handles the passing of time.
func (m *Machine) Advance(now mono.Instant) ([]Action, mono.Instant) {
	m.out = m.out[:0]
	m.expire(now)
	return m.finish(now)
}

func (m *Machine) finish(now mono.Instant) ([]Action, mono.Instant) {
	m.goUnheard(now)
	if m.left {
		return m.out, mono.Never
	}
	if m.Quarantined(now) {
		return m.out, m.muteUntil // it holds nothing
	}
	wake := mono.Never
	if !m.muted() {
		if now >= m.nextSend {
			m.send(now)
		}
		wake = m.nextSend
	}
	switch {
	case len(m.held) == 0:
	case !m.suspended:
		wake = min(wake, m.view.Until)
	case m.cfg.KeepSuspended > 0:
		wake = min(wake, m.discardAt())
	}
	for _, a := range m.arrivals {
		wake = min(wake, a.until)
	}
	if m.leaveBy != 0 {
		wake = min(wake, m.leaveBy)
	}
	return m.out, wake
}

func (m *Machine) emit(a Action) { m.out = append(m.out, a) }

func (m *Machine) note(what Notable, have, want uint64) { m.emit(Note{what, have, want}) }

// expire handles the deadlines that have passed.
func (m *Machine) expire(now mono.Instant) {
	if m.contact.term != 0 && m.contact.at(now) == 0 {
		m.loseContact()
		m.keepArrivals(now)
	}
	m.suspend(now)
	m.forget(now)
	idle := m.suspended || len(m.held)+len(m.arrivals)+len(m.departures) == 0
	if m.parting && !m.parted && m.contact.term == 0 && idle {
		m.partNow() // there is no leader to move anything away with
	}
}

// muted reports whether a message is held back: it would give back what somebody
// relies on.
func (m *Machine) muted() bool { return m.settled != m.settling }

// dropAll lets go of everything, on our own account.
func (m *Machine) dropAll(cause leasehold.Cause) {
	m.suspended = false
	if len(m.held) == 0 {
		return
	}
	held := m.held
	m.publish(nil, m.view.Until)
	m.emit(RevokedLeases{held, cause})
}

// publish makes what we hold known to those who check.
func (m *Machine) publish(held []leasehold.Lease, until mono.Instant) {
	before := m.view.Leases
	m.held = held
	m.view = &View{Leases: held, Kept: held, Until: until, Drift: m.timing.Drift}
	if len(m.departures)+len(m.arrivals) > 0 {
		m.prune()
		m.lapse()
		m.view.Kept = protocol.Missing(held, m.installing())
		m.view.Leases = protocol.Missing(m.view.Kept, m.stopped())
		m.view.Coming = m.coming()
	}
	m.emit(Publish{m.view})
	if m.cfg.Promises && len(protocol.Missing(before, m.view.Leases)) > 0 {
		m.settling++
		m.emit(Settle{m.settling})
	}
}

// send says what we hold, to the leader if there is one who answers.
func (m *Machine) send(now mono.Instant) {
	if m.awaiting {
		m.misses++
		m.redirected = false
		if m.leader != "" {
			m.note(NoteLeaderSilent, uint64(m.misses), 0)
			m.silent, m.leader = m.leader, ""
		}
	}
	m.seq++
	m.sentAt, m.claimed = now, m.suspended
	m.awaiting, m.eager = true, false
	m.nextSend = now.Add(m.patience())
	if m.leaving && m.leaveBy == 0 {
		m.leaveBy = now.Add(m.goodbyeTime())
	}
	m.emit(Send{m.leader, &protocol.LeaseRequest{
		Namespace: m.cfg.Namespace, Holder: m.cfg.Holder, Seq: m.seq,
		Term: m.term, Heard: m.heard, Applied: m.applied,
		Leases: m.held, Suspended: m.suspended, Resumed: m.resumed(), Leaving: m.leaving, Gone: m.gone,
		Mover: m.cfg.Mover, Moves: m.reports(now), Imports: m.imports(now), Parting: m.parting, Draining: m.draining,
	}})
}

// patience is how long to wait for an answer before sending again. It doubles
// with every miss, because an answer to an older message counts as a race: an
// owner that is more impatient than the network is slow would never be heard.
func (m *Machine) patience() time.Duration {
	base, most := m.cfg.Retry, 4*m.cfg.Retry
	if m.timing.Renew > 0 {
		base, most = m.timing.Renew/4, m.timing.Renew
	}
	return m.jitter(min(base<<min(m.misses, 4), most))
}

// jitter takes up to an eighth off d, so that owners do not march in step.
func (m *Machine) jitter(d time.Duration) time.Duration {
	return d - time.Duration(m.cfg.Rand.Int64N(int64(d/8)+1))
}

// speak sends at once, or as soon as our newest message is answered.
func (m *Machine) speak(now mono.Instant) {
	if m.awaiting {
		m.eager = true
		return
	}
	m.nextSend = now
}

// backoff is how long to wait at most after two messages have crossed: a few
// times as long as answers take, so that the next two hardly ever cross again.
func (m *Machine) backoff() time.Duration {
	if m.rtt == 0 {
		return m.cfg.Backoff
	}
	return min(m.cfg.Backoff, 4*m.rtt+time.Millisecond)
}

// answered learns how long answers take.
func (m *Machine) answered(now mono.Instant) {
	took := now.Sub(m.sentAt)
	if m.rtt == 0 {
		m.rtt = took
	}
	m.rtt += (took - m.rtt) / 8
}

// speakSoon sends within the backoff.
func (m *Machine) speakSoon(now mono.Instant) {
	at := now.Add(time.Duration(m.cfg.Rand.Int64N(int64(m.backoff()) + 1)))
	m.nextSend = min(m.nextSend, at)
	m.awaiting = false // what we wait for has been dropped; that is no silence
}

// hungUp asks everyone, soon, if the leader can no longer be heard.
func (m *Machine) hungUp(now mono.Instant, manager storage.ManagerID) {
	if m.leader == "" || manager != m.leader {
		return
	}
	m.silent, m.leader = m.leader, ""
	m.redirected = false
	m.misses = max(m.misses, 1)
	m.speakSoon(now)
}

// redirect follows a hint, once for every time that nobody answered: managers
// may point at each other, or at one that has just been silent. A leader that
// is newer than any that we know of is worth a message whatever was before.
func (m *Machine) redirect(now mono.Instant, n protocol.NotLeader) {
	if n.Validate() != nil {
		m.note(NoteBadMessage, uint64(n.Term), 0)
		return
	}
	newer := n.Leader != "" && n.Term > m.term && n.Term > m.hinted
	served := !m.awaiting || m.misses == 0
	news := n.Leader != "" && n.Leader != m.leader && n.Leader != m.silent && n.Term >= m.term
	if !newer && (served || !news || m.redirected) {
		return
	}
	m.redirected = true
	m.hinted = max(m.hinted, n.Term)
	m.leader = n.Leader
	m.speakSoon(now)
}

// maxRefusedWait bounds the wait after a refusal, however long leases are: what was wrong may have
// been mended, and managers remember the claims of refused owners for some of these waits.
const maxRefusedWait = 10 * time.Second

// refused waits before it speaks again: whoever refuses has heard us.
func (m *Machine) refused(now mono.Instant, why leasehold.Kind) {
	m.note(NoteServerRefuse, uint64(why), 0)
	m.awaiting, m.redirected = false, false
	m.misses = 0
	m.leader = ""
	wait := 4 * m.cfg.Retry
	if m.timing.Renew > 0 {
		wait = min(m.timing.Renew, maxRefusedWait)
	}
	m.nextSend = now.Add(m.jitter(wait))
}

func (m *Machine) slept(now mono.Instant) {
	m.note(NoteSlept, uint64(len(m.held)), 0)
	m.dropAll(leasehold.CauseExpired)
	m.loseContact()
	m.rate = rateGuard{}
	// The answer to what we sent before may be arbitrarily old: its leases
	// would count from a send time on a clock that has since stood still. A
	// new message makes every earlier one's answer a race.
	m.nextSend = now
	m.awaiting = false
}

func (m *Machine) predecessorGone(now mono.Instant, s leasehold.Session) {
	if s != m.asked || s.IsZero() || s == m.cfg.Holder.Session {
		return
	}
	m.gone = s
	m.nextSend = now
	m.awaiting = false
}
