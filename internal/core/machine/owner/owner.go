package owner

import (
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
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

	renewal     renewal     // our requests
	leader      leader      // who answers them
	held        holding     // the leases
	clock       clockGuard  // whether our clock may time them
	moves       moves       // state on its way from us and to us
	promises    promises    // what others rely on
	predecessor predecessor // the session that had our name
	exit        exit        // whether we leave
}

// New returns an owner that holds nothing and speaks at once.
func New(now mono.Instant, cfg Config) (*Machine, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Machine{cfg: cfg, held: holding{view: &View{}}, renewal: renewal{nextSend: now}}, nil
}

// View returns the view last published.
func (m *Machine) View() *View { return m.held.view }

// Term returns the newest leader's term that the owner has heard of.
func (m *Machine) Term() leasehold.Term { return m.leader.term }

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
		m.promises.over = max(m.promises.over, min(e.Number, m.promises.made))
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
	if m.exit.leave == left {
		return m.out, mono.Never
	}
	if m.Quarantined(now) {
		return m.out, m.clock.muteUntil // it holds nothing
	}
	wake := mono.Never
	if !m.promises.open() {
		if now >= m.renewal.nextSend {
			m.send(now)
		}
		wake = m.renewal.nextSend
	}
	switch {
	case len(m.held.leases) == 0:
	case !m.held.suspended:
		wake = min(wake, m.held.view.Until)
	case m.cfg.KeepSuspended > 0:
		wake = min(wake, m.discardAt())
	}
	for _, a := range m.moves.arrivals {
		wake = min(wake, a.until)
	}
	if m.exit.leaveBy != 0 {
		wake = min(wake, m.exit.leaveBy)
	}
	return m.out, wake
}

func (m *Machine) emit(a Action) { m.out = append(m.out, a) }

func (m *Machine) note(what Notable, have, want uint64) { m.emit(Note{what, have, want}) }

// expire handles the deadlines that have passed.
func (m *Machine) expire(now mono.Instant) {
	if m.moves.contact.term != 0 && m.moves.contact.at(now) == 0 {
		m.loseContact()
		m.keepArrivals(now)
	}
	m.suspend(now)
	m.forget(now)
	idle := m.held.suspended || len(m.held.leases)+len(m.moves.arrivals)+len(m.moves.departures) == 0
	if m.exit.part == parting && m.moves.contact.term == 0 && idle {
		m.partNow() // there is no leader to move anything away with
	}
}

// dropAll lets go of everything, on our own account.
func (m *Machine) dropAll(cause leasehold.Cause) {
	m.held.suspended = false
	if len(m.held.leases) == 0 {
		return
	}
	held := m.held.leases
	m.publish(nil, m.held.view.Until)
	m.emit(RevokedLeases{held, cause})
}

// publish makes what we hold known to those who check.
func (m *Machine) publish(held []leasehold.Lease, until mono.Instant) {
	before := m.held.view.Leases
	m.held.leases = held
	m.held.view = &View{Leases: held, Kept: held, Until: until, Drift: m.leader.timing.Drift}
	if len(m.moves.departures)+len(m.moves.arrivals) > 0 {
		m.prune()
		m.lapse()
		m.held.view.Kept = protocol.Missing(held, m.moves.installing())
		m.held.view.Leases = protocol.Missing(m.held.view.Kept, m.moves.stopped())
		m.held.view.Coming = m.coming()
	}
	m.emit(Publish{m.held.view})
	if m.cfg.Promises && len(protocol.Missing(before, m.held.view.Leases)) > 0 {
		m.promises.made++
		m.emit(Settle{m.promises.made})
	}
}

// send says what we hold, to the leader if there is one who answers.
func (m *Machine) send(now mono.Instant) {
	if m.renewal.awaiting {
		m.renewal.misses++
		m.leader.redirected = false
		if m.leader.id != "" {
			m.note(NoteLeaderSilent, uint64(m.renewal.misses), 0)
			m.leader.silent, m.leader.id = m.leader.id, ""
		}
	}
	m.renewal.seq++
	m.renewal.sentAt, m.renewal.claimed = now, m.held.suspended
	m.renewal.awaiting, m.renewal.eager = true, false
	m.renewal.nextSend = now.Add(m.patience())
	if m.exit.leave == leaving && m.exit.leaveBy == 0 {
		m.exit.leaveBy = now.Add(m.leader.goodbyeTime())
	}
	m.emit(Send{m.leader.id, &protocol.LeaseRequest{
		Namespace: m.cfg.Namespace, Holder: m.cfg.Holder, Seq: m.renewal.seq,
		Term: m.leader.term, Heard: m.leader.heard, Applied: m.leader.applied,
		Leases: m.held.leases, Suspended: m.held.suspended, Resumed: m.held.resumed(), Leaving: m.exit.leave != notLeaving, Gone: m.predecessor.gone,
		Mover: m.cfg.Mover, Moves: m.moves.reports(now), Imports: m.moves.imports(now), Parting: m.exit.part != notParting, Draining: m.moves.draining,
	}})
}

// patience is how long to wait for an answer before sending again. It doubles
// with every miss, because an answer to an older message counts as a race: an
// owner that is more impatient than the network is slow would never be heard.
func (m *Machine) patience() time.Duration {
	base, most := m.cfg.Retry, 4*m.cfg.Retry
	if m.leader.timing.Renew > 0 {
		base, most = m.leader.timing.Renew/4, m.leader.timing.Renew
	}
	return m.jitter(min(base<<min(m.renewal.misses, 4), most))
}

// jitter takes up to an eighth off d, so that owners do not march in step.
func (m *Machine) jitter(d time.Duration) time.Duration {
	return d - time.Duration(m.cfg.Rand.Int64N(int64(d/8)+1))
}

// backoff is how long to wait at most after two messages have crossed: a few
// times as long as answers take, so that the next two hardly ever cross again.
func (m *Machine) backoff() time.Duration {
	if m.renewal.rtt == 0 {
		return m.cfg.Backoff
	}
	return min(m.cfg.Backoff, 4*m.renewal.rtt+time.Millisecond)
}

// speakSoon sends within the backoff.
func (m *Machine) speakSoon(now mono.Instant) {
	at := now.Add(time.Duration(m.cfg.Rand.Int64N(int64(m.backoff()) + 1)))
	m.renewal.nextSend = min(m.renewal.nextSend, at)
	m.renewal.awaiting = false // what we wait for has been dropped; that is no silence
}

// hungUp asks everyone, soon, if the leader can no longer be heard.
func (m *Machine) hungUp(now mono.Instant, manager storage.ManagerID) {
	if m.leader.id == "" || manager != m.leader.id {
		return
	}
	m.leader.silent, m.leader.id = m.leader.id, ""
	m.leader.redirected = false
	m.renewal.misses = max(m.renewal.misses, 1)
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
	newer := n.Leader != "" && n.Term > m.leader.term && n.Term > m.leader.hinted
	served := !m.renewal.awaiting || m.renewal.misses == 0
	news := n.Leader != "" && n.Leader != m.leader.id && n.Leader != m.leader.silent && n.Term >= m.leader.term
	if !newer && (served || !news || m.leader.redirected) {
		return
	}
	m.leader.redirected = true
	m.leader.hinted = max(m.leader.hinted, n.Term)
	m.leader.id = n.Leader
	m.speakSoon(now)
}

// maxRefusedWait bounds the wait after a refusal, however long leases are: what was wrong may have
// been mended, and managers remember the claims of refused owners for some of these waits.
const maxRefusedWait = 10 * time.Second

// refused waits before it speaks again: whoever refuses has heard us.
func (m *Machine) refused(now mono.Instant, why leasehold.Kind) {
	m.note(NoteServerRefuse, uint64(why), 0)
	m.renewal.awaiting, m.leader.redirected = false, false
	m.renewal.misses = 0
	m.leader.id = ""
	wait := 4 * m.cfg.Retry
	if m.leader.timing.Renew > 0 {
		wait = min(m.leader.timing.Renew, maxRefusedWait)
	}
	m.renewal.nextSend = now.Add(m.jitter(wait))
}

func (m *Machine) slept(now mono.Instant) {
	m.note(NoteSlept, uint64(len(m.held.leases)), 0)
	m.discardImports()
	m.dropAll(leasehold.CauseExpired)
	m.loseContact()
	m.clock.rate = rateGuard{}
	// The answer to what we sent before may be arbitrarily old: its leases
	// would count from a send time on a clock that has since stood still. A
	// new message makes every earlier one's answer a race.
	m.renewal.nextSend = now
	m.renewal.awaiting = false
}

func (m *Machine) predecessorGone(now mono.Instant, s leasehold.Session) {
	if s != m.predecessor.asked || s.IsZero() || s == m.cfg.Holder.Session {
		return
	}
	m.predecessor.gone = s
	m.renewal.nextSend = now
	m.renewal.awaiting = false
}
