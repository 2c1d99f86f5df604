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

// Config configures an owner.
type Config struct {
	Namespace leasehold.Namespace
	// Holder is name, session and address of the owner, and the death hash if a supervisor has
	// registered the session; immutable.
	Holder *table.Holder
	Limits protocol.Limits
	// Mover is the address that receives moved state; empty if the owner can neither send nor
	// receive state.
	Mover string
	// Promises: other processes rely for a time on published leases. A lease that has ended is
	// reported as released only after that time. See [Settle]. They rely on it even after the end of
	// this process, so a Holder with a death hash is invalid.
	Promises bool

	// KeepSuspended limits how long leases stay suspended and the application keeps their
	// state. Default 0: until a leader replies or the process ends.
	KeepSuspended time.Duration

	// Retry is the timeout of a request until a leader has sent its timing. The retry goes to
	// all managers. Default 500 ms.
	Retry time.Duration
	// Backoff limits the random wait after a request and a reply have crossed. If it is shorter
	// than a round trip, they cross again; if it is long compared to the lease, recalls are
	// slow. Default 200 ms.
	Backoff time.Duration

	// Rand draws jitter and backoffs. Owners must not share a seed.
	Rand *rand.Rand
	// Beats are the instants of renewals; see [mono.Beats].
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
	if c.Promises && !c.Holder.DeathHash.IsZero() {
		return leasehold.Errorf("owner", leasehold.ErrInvalid, string(c.Holder.Owner), "promises outlive this process, so its death must not end its leases: register no supervisor")
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

	renewal     renewal     // requests
	leader      leader      // and what it has sent
	held        holding     // the leases
	clock       clockGuard  // whether the clock is fast enough for leases
	moves       moves       // departures and arrivals of state
	promises    promises    // views on which other processes rely
	predecessor predecessor // the session that has this owner's name
	exit        exit        // parting and leaving
}

// New returns an owner without leases that sends a request at once.
func New(now mono.Instant, cfg Config) (*Machine, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Machine{cfg: cfg, held: holding{view: &View{}}, renewal: renewal{nextSend: now}}, nil
}

// View returns the last published view.
func (m *Machine) View() *View { return m.held.view }

// Term returns the highest term in a reply.
func (m *Machine) Term() leasehold.Term { return m.leader.term }

// Step handles deadlines up to now and then the event. It returns the actions in order, and
// the latest instant for the next call of Advance.
func (m *Machine) Step(now mono.Instant, e Event) ([]Action, mono.Instant) {
	m.out = m.out[:0]
	m.expire(now)
	switch e := e.(type) {
	case Reply:
		m.reply(now, e.LeaseReply)
	case Redirect:
		m.redirect(now, e.NotLeader)
	case Disconnected:
		m.disconnected(now, e.Manager)
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

// Advance handles deadlines up to now.
func (m *Machine) Advance(now mono.Instant) ([]Action, mono.Instant) {
	m.out = m.out[:0]
	m.expire(now)
	return m.finish(now)
}

func (m *Machine) finish(now mono.Instant) ([]Action, mono.Instant) {
	m.leaveUnacknowledged(now)
	if m.exit.leave == left {
		return m.out, mono.Never
	}
	if m.Quarantined(now) {
		return m.out, m.clock.quarantineEnd // it has no leases
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

// expire handles deadlines up to now.
func (m *Machine) expire(now mono.Instant) {
	if m.moves.contact.term != 0 && m.moves.contact.at(now) == 0 {
		m.loseContact()
		m.keepArrivals(now)
	}
	m.suspend(now)
	m.expireArrivals(now)
	idle := m.held.suspended || len(m.held.leases)+len(m.moves.arrivals)+len(m.moves.departures) == 0
	if m.exit.part == parting && m.moves.contact.term == 0 && idle {
		m.finishParting() // without a leader there are no moves
	}
}

// dropAll ends all leases without an order of the leader.
func (m *Machine) dropAll(cause leasehold.Cause) {
	m.held.suspended = false
	if len(m.held.leases) == 0 {
		return
	}
	held := m.held.leases
	m.publish(nil, m.held.view.Until)
	m.emit(RevokedLeases{held, cause})
}

// publish sets the leases and their deadline, and publishes the view that results.
func (m *Machine) publish(held []leasehold.Lease, until mono.Instant) {
	before := m.held.view.Leases
	m.held.leases = held
	m.held.view = &View{Leases: held, Kept: held, Until: until, Drift: m.leader.timing.Drift}
	if len(m.moves.departures)+len(m.moves.arrivals) > 0 {
		m.endDepartures()
		m.endArrivals()
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

// send sends a request with all leases to the leader, or to all managers if the leader is unknown.
func (m *Machine) send(now mono.Instant) {
	if m.renewal.awaiting {
		m.renewal.misses++
		m.leader.redirected = false
		if m.leader.id != "" {
			m.emit(Note{What: NoteLeaderSilent, Misses: m.renewal.misses})
			m.leader.silent, m.leader.id = m.leader.id, ""
		}
	}
	m.renewal.seq++
	m.renewal.sentAt, m.renewal.claimsSuspended = now, m.held.suspended
	m.renewal.awaiting, m.renewal.sendOnReply = true, false
	m.renewal.acks = m.leader.acked()
	m.renewal.nextSend = now.Add(m.retryTimeout())
	if m.exit.leave == leaving && m.exit.leaveBy == 0 {
		m.exit.leaveBy = now.Add(m.leader.goodbyeTimeout())
	}
	m.emit(Send{m.leader.id, &protocol.LeaseRequest{
		Namespace: m.cfg.Namespace, Holder: m.cfg.Holder, Seq: m.renewal.seq,
		Term: m.leader.term, Heard: m.leader.received, Applied: m.leader.applied,
		Leases: m.held.leases, Suspended: m.held.suspended, Resumed: m.held.resumed(), Leaving: m.exit.leave != notLeaving, Gone: m.predecessor.gone,
		Mover: m.cfg.Mover, Moves: m.moves.reports(now), Imports: m.moves.imports(now), Parting: m.exit.part != notParting, Draining: m.moves.draining,
	}})
}

// retryTimeout is the timeout of a request. It doubles with every miss, because a reply to an
// older request is dropped as a race: with a timeout below the round-trip time the owner
// would never accept a reply.
func (m *Machine) retryTimeout() time.Duration {
	base, most := m.cfg.Retry, 4*m.cfg.Retry
	if m.leader.timing.Renew > 0 {
		base, most = m.leader.timing.Renew/4, m.leader.timing.Renew
	}
	return m.jitter(min(base<<min(m.renewal.misses, 4), most))
}

// jitter reduces d by up to an eighth, so that owners do not send at the same time.
func (m *Machine) jitter(d time.Duration) time.Duration {
	return d - time.Duration(m.cfg.Rand.Int64N(int64(d/8)+1))
}

// backoff is the maximum wait after a request and a reply have crossed: a few round-trip
// times, so that the next two rarely cross.
func (m *Machine) backoff() time.Duration {
	if m.renewal.rtt == 0 {
		return m.cfg.Backoff
	}
	return min(m.cfg.Backoff, 4*m.renewal.rtt+time.Millisecond)
}

// sendAfterBackoff schedules a request after a random part of the backoff.
func (m *Machine) sendAfterBackoff(now mono.Instant) {
	at := now.Add(time.Duration(m.cfg.Rand.Int64N(int64(m.backoff()) + 1)))
	m.renewal.nextSend = min(m.renewal.nextSend, at)
	m.renewal.awaiting = false // the reply was dropped, which is not a miss
}

// disconnected schedules a request to all managers if the connection to the leader has broken.
func (m *Machine) disconnected(now mono.Instant, manager storage.ManagerID) {
	if m.leader.id == "" || manager != m.leader.id {
		return
	}
	m.leader.silent, m.leader.id = m.leader.id, ""
	m.leader.redirected = false
	m.renewal.misses = max(m.renewal.misses, 1)
	m.sendAfterBackoff(now)
}

// redirect follows the hint of a manager to the leader, once after each timeout: managers may
// name each other, or a leader that has just not replied. A hint to a higher term than all
// before is always followed.
func (m *Machine) redirect(now mono.Instant, n protocol.NotLeader) {
	if n.Validate() != nil {
		m.emit(Note{What: NoteBadMessage, Term: n.Term})
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
	m.sendAfterBackoff(now)
}

// maxRefusedWait limits the wait after a refusal if leases are long: the cause may have been
// fixed, and managers keep the claims of refused owners for a few of these waits.
const maxRefusedWait = 10 * time.Second

// refused schedules the next request after a wait: the manager is reachable, so a quick retry does not help.
func (m *Machine) refused(now mono.Instant, why leasehold.Kind) {
	m.emit(Note{What: NoteServerRefuse, Kind: why})
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
	m.emit(Note{What: NoteSlept, Leases: len(m.held.leases)})
	m.discardImports()
	m.dropAll(leasehold.CauseExpired)
	m.loseContact()
	m.clock.rate = rateGuard{}
	// A reply to an earlier request may be arbitrarily old: the deadline of its leases would
	// count from a time before the clock stood still. After a new request such a reply is
	// dropped as a race.
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
