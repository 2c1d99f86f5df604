package byrecord

import (
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// An Event is an input of the election.
type Event interface{ electionEvent() }

type (
	// Seen is the record from a read or a watch event. It may be stale. AtLeast is that of the
	// corresponding [Read]. Wall is the wall clock in seconds since 1970, and Uptime that of the
	// machine; 0 if unknown. Store is the store that was read.
	Seen struct {
		Record  storage.Record
		AtLeast storage.Version
		Wall    int64
		Uptime  time.Duration
		Store   storage.Identity
	}
	// ReadFailed: a read was not answered.
	ReadFailed struct{}
	// Swapped is the reply to [Swap]. It contains a copy of the Swap: a reply that arrives after a
	// watch event has shown the record must not count for the next swap. Version is that of the new
	// record, if Outcome is Done.
	Swapped struct {
		Swap    Swap
		Outcome storage.Outcome
		Version storage.Version
	}
	// Outranked: a peer has received a higher term. It is a hint to read the record. The report of
	// a peer must not end a leadership, unless the store has no such leader, which means that it
	// was restored. Manager: the peer is a manager of the group, which has the term from a leader's
	// request.
	Outranked struct {
		By      leasehold.Term
		Manager bool
	}
	// Deposed: the store has a leader with a higher term.
	Deposed struct{ By leasehold.Term }
	// Slept: the local clock may have stopped while others ran, because the computer was suspended.
	Slept struct{}
	// Resign requests a permanent resignation.
	Resign struct{}
)

func (Seen) electionEvent()       {}
func (ReadFailed) electionEvent() {}
func (Swapped) electionEvent()    {}
func (Outranked) electionEvent()  {}
func (Deposed) electionEvent()    {}
func (Slept) electionEvent()      {}
func (Resign) electionEvent()     {}

// An Action is executed by the shell, in order.
type Action interface{ electionAction() }

type (
	// Read reads the record; the reply is [Seen] or [ReadFailed]. Fresh requests a linearizable
	// read: its result has at least the version AtLeast, which was stored before.
	Read struct {
		Fresh   bool
		AtLeast storage.Version
	}
	// Swap writes the record if the stored one has version Prev; the reply is [Swapped].
	Swap struct {
		Prev storage.Version
		New  storage.Record
	}
	// Lead: this manager leads, in a new term, until Until. Tables that are below Floor continue
	// above it. Uncertain: the store may have been restored from a backup. Tables below LostBelow
	// have certainly lost history. Clock is the number of the wall clock, 0 if unknown (see
	// [storage.Clock]).
	Lead struct {
		Term                    leasehold.Term
		Until                   mono.Instant
		Floor, LostBelow, Clock uint64
		Uncertain               bool
	}
	// Extend: the authority is extended until Until.
	Extend struct{ Until mono.Instant }
	// StepDown: this manager does not lead any more. In a group without a store, the next term must
	// be above Above, which a peer has received.
	StepDown struct{ Above leasehold.Term }
	// Resigned: the resignation is stored.
	Resigned struct{}
	// Note tells the operator, and the counters, what happened and why.
	Note struct {
		What      Notable
		Term      leasehold.Term // that the note is about
		OwnTerm   leasehold.Term // of this manager
		StoreTerm leasehold.Term // of the record in the store

		Version, NewestVersion storage.Version
		Outcome                storage.Outcome
		Elapsed, Limit         time.Duration
		Resignations           int
	}
)

func (Read) electionAction()     {}
func (Swap) electionAction()     {}
func (Lead) electionAction()     {}
func (Extend) electionAction()   {}
func (StepDown) electionAction() {}
func (Resigned) electionAction() {}
func (Note) electionAction()     {}

// A Notable is something worth a line in a log.
type Notable uint8

// What an election may note.
const (
	NoteTakeover     Notable = iota // the leader record has not changed for longer than the limit: Elapsed, Limit
	NoteResignedSeen                // the leader has resigned, and a standby takes over at once: Term
	NoteElected                     // this manager leads: Term
	NoteBeaten                      // another manager has written its record first: Term, OwnTerm
	NoteSwapUnknown                 // the outcome of a swap is not known: Outcome
	NoteSwapFound                   // a swap of unknown outcome had happened: Version
	NoteSwapRetry                   // a swap of unknown outcome had not happened: Version
	NoteLapsed                      // authority expired before it was renewed: Elapsed since then
	NoteRegained                    // authority had expired, is renewed, and no other manager had taken over
	NoteDeposed                     // another manager leads: Term, OwnTerm
	NoteResigning                   // this manager resigns: Term
	NoteDismissed                   // the lease by which this manager led has ended: Term
	NoteOutranked                   // a client or manager has seen a higher term: Term, OwnTerm
	NoteOldRecord                   // a record older than one read before was ignored: Version, NewestVersion
	NoteSlept                       // the clock stood still, and the end of authority is unknown: Term
	NoteOwnRecord                   // the record is this manager's, from before it stepped down; it starts a new term: Term
	NoteForgotten                   // a client or manager has seen a term that the store does not have, so it was restored: Term, StoreTerm
	NoteUncertain                   // no manager has seen the record change, so the store may have been restored: Elapsed by wall clocks
	NoteDisbelieved                 // an owner reports a higher term, which the managers' memory disproves: Term, OwnTerm
	NoteLimping                     // renewals of the record are too late, the leader resigns: Elapsed in the last one, Limit is the TTL
	NoteFruitless                   // leader again soon after it resigned because of late renewals: Resignations in a row
	NoteCopied                      // the record was written to another store, so this one was restored from a backup: Term
	notables
)

var notableNames = [notables]string{
	"takeover", "resignation seen", "elected", "beaten", "swap unknown", "swap found", "swap retried",
	"authority lapsed", "authority regained", "deposed", "resigning", "dismissed", "outranked", "old record", "slept", "own record", "history lost", "uncertain",
	"disbelieved", "limping", "resignation fruitless", "record copied",
}

func (n Notable) String() string { return notableNames[n] }

// Notables returns how many there are: they number from 0.
func Notables() int { return int(notables) }

// Config is the configuration of a manager.
type Config struct {
	Self storage.ManagerID
	// Session is random, and new with every start of the process.
	Session leasehold.Session
	// Boot identifies the boot of the machine; empty if unknown.
	Boot string
	// TTL is how long a leader acts without a renewal. A shorter TTL gives faster failover; a
	// longer one tolerates a slower store. Default 3 s.
	TTL time.Duration
	// Renew is the renewal interval. Default TTL/3.
	Renew time.Duration
	// Poll is the interval at which a standby reads the record, in case watch events are lost.
	// Default TTL/6.
	Poll time.Duration
	// Drift bounds the ratio of clock rates. Default 1.20.
	Drift mono.Drift
	// Rand draws jitter.
	Rand *rand.Rand
}

// pollsPerTTL is for the default of Config.Poll.
const pollsPerTTL = 6

// MaxFailover is how long a group has no leader after a crash of the leader, with the default of Config.Poll and apart
// from delays of the store: a standby that has lost the watch event of the last renewal reads it a poll later.
func MaxFailover(ttl time.Duration, drift mono.Drift) time.Duration {
	return drift.Stretch(ttl) + ttl/pollsPerTTL
}

func (c *Config) validate() error {
	if c.TTL == 0 {
		c.TTL = 3 * time.Second
	}
	if c.Renew == 0 {
		c.Renew = c.TTL / 3
	}
	if c.Poll == 0 {
		c.Poll = c.TTL / pollsPerTTL
	}
	if c.Drift == 0 {
		c.Drift = 1.20
	}
	switch {
	case c.Self == "" || c.Session.IsZero() || c.Rand == nil:
		return leasehold.Errorf("election", leasehold.ErrInvalid, string(c.Self), "Self, Session and Rand must be set")
	case c.TTL < 10*time.Millisecond || c.Renew <= 0 || c.Renew > c.TTL/2 || c.Poll <= 0:
		return leasehold.Errorf("election", leasehold.ErrInvalid, string(c.Self),
			"ttl %v, renew %v and poll %v: want a ttl of at least 10 ms, two renewals in it, and a positive poll", c.TTL, c.Renew, c.Poll)
	case !(c.Drift >= 1 && c.Drift <= 10):
		return leasehold.Errorf("election", leasehold.ErrInvalid, string(c.Self), "drift is %v, want 1 to 10", float64(c.Drift))
	}
	return nil
}

// seldom is a long time, in TTLs. Clocks that differ by farthest seconds, eight years, cannot both
// be right.
const (
	seldom   = 20
	farthest = 1 << 28
)

// attempt is a swap that was sent and is not resolved.
type attempt struct {
	prev storage.Version
	rec  storage.Record
	// sent is when it was first sent: authority counts from then.
	sent      mono.Instant
	doubt     bool // its outcome is unknown, and a read is needed
	fails     int  // number of unknown outcomes
	uncertain bool // the store may have lost history
}

// A Machine is the leader election of one manager. It is not safe for concurrent use. The actions
// that Step and Advance return are valid until the next call.
type Machine struct {
	cfg Config
	out []Action

	observed observation // the record
	clocks   hostClocks  // the wall clock and the uptime of the machine
	higher   higherTerm  // terms that peers have received
	nextRead mono.Instant
	try      *attempt   // swap in flight; nil if there is none
	lead     leadership // own role and authority
	limp     limp
}

// New returns a standby that reads the record at once.
func New(now mono.Instant, cfg Config) (*Machine, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Machine{cfg: cfg, nextRead: now, lead: leadership{nextRenew: mono.Never}}, nil
}

// Leader returns the last known leader and its term.
func (m *Machine) Leader() (storage.ManagerID, leasehold.Term) {
	if m.observed.record.Resigned {
		return "", m.observed.record.Term
	}
	return m.observed.record.Leader, m.observed.record.Term
}

// Stale reports whether there was no sign of the leader for longer than its authority.
func (m *Machine) Stale(now mono.Instant) bool {
	if m.lead.role == leading {
		return now >= m.lead.until
	}
	return !m.observed.known() || m.observed.record.Resigned || now >= m.observed.at.Add(m.wait())
}

// Drift returns the bound on the ratio of clock rates.
func (m *Machine) Drift() mono.Drift { return m.cfg.Drift }

// Leads reports whether this manager may act as leader at now.
func (m *Machine) Leads(now mono.Instant) bool { return m.lead.role == leading && now < m.lead.until }

// Step handles an event at now, and the time passed until then. It returns the actions, in order,
// and the latest time for the next Advance.
func (m *Machine) Step(now mono.Instant, e Event) ([]Action, mono.Instant) {
	m.out = m.out[:0]
	switch e := e.(type) {
	case Seen:
		if e.Wall != 0 {
			m.clocks.wall, m.clocks.wallAt = e.Wall, now
		}
		m.clocks.uptime, m.clocks.uptimeAt, m.observed.store = e.Uptime, now, e.Store
		m.handleRecord(now, e)
	case ReadFailed:
	case Swapped:
		m.handleSwapped(now, e)
	case Outranked:
		m.handleOutranked(now, e.By)
	case Deposed:
		m.nextRead = now
		m.higher.term = max(m.higher.term, e.By)
		if m.lead.role == leading && e.By > m.observed.record.Term {
			m.stepDown(e.By)
		}
	case Slept:
		m.handleSlept(now)
	case Resign:
		m.resign(now)
	}
	return m.finish(now)
}

// Advance handles the passing of time.
func (m *Machine) Advance(now mono.Instant) ([]Action, mono.Instant) {
	m.out = m.out[:0]
	return m.finish(now)
}

func (m *Machine) emit(a Action) { m.out = append(m.out, a) }

func (m *Machine) finish(now mono.Instant) ([]Action, mono.Instant) {
	if m.lead.role == resigned {
		return m.out, mono.Never
	}
	if m.lead.role == leading && !m.lead.lapsed && now >= m.lead.until {
		m.lead.lapsed = true
		m.emit(Note{What: NoteLapsed, Elapsed: now.Sub(m.lead.until)})
	}
	switch {
	case m.try != nil:
		m.resolve(now)
	case m.lead.role != standby:
		m.renew(now)
	default:
		m.watchLeader(now)
	}
	return m.out, m.nextWake(now)
}

// nextWake returns the next time at which Advance has an effect.
func (m *Machine) nextWake(now mono.Instant) mono.Instant {
	switch {
	case m.try != nil && m.try.doubt:
		return m.nextRead
	case m.try != nil:
		return mono.Never
	case m.lead.role != standby:
		return m.lead.nextRenew
	case m.observed.known() && m.fresh(now):
		return min(m.nextRead, max(m.observed.at.Add(m.wait()), m.standsBackUntil()))
	}
	return m.nextRead
}

// resolve reads the record periodically while the outcome of a swap is unknown.
func (m *Machine) resolve(now mono.Instant) {
	if m.try.doubt && now >= m.nextRead {
		m.nextRead = now.Add(m.cfg.Poll)
		m.emit(Read{Fresh: true, AtLeast: m.observed.record.Version})
	}
}

// renew writes a new beat, or the resignation.
func (m *Machine) renew(now mono.Instant) {
	if now < m.lead.nextRenew {
		return
	}
	next := m.observed.record
	next.Beat++
	next.Resigned = m.lead.role != leading
	m.stamp(now, &next)
	m.swap(now, next)
}

// watchLeader watches the leader, and campaigns when the record has not changed for long enough.
func (m *Machine) watchLeader(now mono.Instant) {
	if m.observed.known() && m.fresh(now) && now >= m.standsBackUntil() && m.vacant(now) {
		m.campaign(now)
		return
	}
	if now >= m.nextRead {
		m.nextRead = now.Add(m.cfg.Poll - time.Duration(m.cfg.Rand.Int64N(int64(m.cfg.Poll/8)+1)))
		m.emit(Read{})
	}
}

// fresh reports whether the record was read recently. A manager that was stopped for long reads it
// again before it campaigns: its wall clock, which is extrapolated between two reads, may be wrong
// by hours.
func (m *Machine) fresh(now mono.Instant) bool { return now.Sub(m.clocks.uptimeAt) <= m.recent() }

// campaign tries to take over. If the store may have lost history, all numbers continue above
// those that may be lost. The floor is stored in the record, so it applies to every later leader.
// The term is above all possible lost terms, at one per second; owners report a higher one.
func (m *Machine) campaign(now mono.Instant) {
	uncertain, restored := m.uncertain(now), m.observed.restored || m.observed.copied()
	if m.observed.copied() {
		m.emit(Note{What: NoteCopied, Term: m.observed.record.Term})
	}
	missed := int64(0)
	if uncertain {
		missed = m.missed(now)
		m.emit(Note{What: NoteUncertain, Elapsed: time.Duration(missed) * time.Second})
	}
	rec := storage.Record{
		Term: max(m.observed.record.Term+leasehold.Term(missed), m.higher.term) + 1, Leader: m.cfg.Self, Session: m.cfg.Session, Beat: 1,
		Wait: m.cfg.Drift.Stretch(m.cfg.TTL), Floor: m.observed.record.Floor, LostBelow: m.observed.record.LostBelow,
	}
	m.stamp(now, &rec)
	if uncertain {
		rec.Floor = storage.NextFloor(m.observed.record, m.higher.floor, rec.At, rec.Term)
	}
	if restored {
		rec.LostBelow = rec.Floor
	}
	m.swap(now, rec)
	m.try.uncertain = uncertain
}

// stamp sets time and place of the write in a record.
func (m *Machine) stamp(now mono.Instant, r *storage.Record) {
	r.At, r.Boot, r.Uptime, r.Store = m.clocks.unix(now), "", 0, m.observed.store
	if up := m.clocks.upFor(now); up > 0 && m.cfg.Boot != "" {
		r.Boot, r.Uptime = m.cfg.Boot, up
	}
}

// uncertain reports whether the store may have been restored from a backup, because the age of the
// record is unknown. It is known to a manager that has observed a change of the record, and to a
// manager that runs in the same boot of the same machine as the writer. A backup younger than a
// minute is not restored. Wall clocks prove nothing.
func (m *Machine) uncertain(now mono.Instant) bool {
	if m.observed.record.Version == 0 {
		return false
	}
	evidence := m.observed.doubtful || m.observed.restored || m.observed.copied() || m.higher.floor > m.observed.record.Floor
	witnessed := m.observed.stage == recordWitnessed && now.Sub(m.observed.at) <= m.recent()
	return evidence || !witnessed && !m.young(now)
}

// replaced reports whether the record was written by this manager, and its data directory was
// replaced by a copy since. The copy may be as new as the original.
func (m *Machine) replaced() bool {
	return m.observed.record.Leader == m.cfg.Self && differ(m.observed.record.Store.Directory, m.observed.store.Directory)
}

// differ reports whether two names are known and differ.
func differ(a, b string) bool { return a != "" && b != "" && a != b }

// young reports whether the record was written recently in this boot of this machine.
func (m *Machine) young(now mono.Instant) bool {
	up := m.clocks.upFor(now)
	if up == 0 || m.cfg.Boot == "" || m.observed.record.Boot != m.cfg.Boot || m.clocks.woken || m.replaced() {
		return false
	}
	age := up - m.observed.record.Uptime
	if age < 0 || age > m.recent() {
		return false
	}
	// A machine that was reverted to an earlier state has an earlier uptime too. Its wall clock was
	// set since, and contradicts the uptime. A wrong wall clock costs only a wait.
	wall, at := m.clocks.unix(now), m.observed.record.At
	return wall == 0 || at == 0 || (time.Duration(wall-at)*time.Second-age).Abs() <= time.Minute
}

// recent is the maximum age of a record in a group that had no outage longer than a failover.
func (m *Machine) recent() time.Duration { return max(time.Minute, seldom*m.wait()) }

// missed returns the age of the record in seconds, by wall clocks. It is used to choose a term, and
// proves nothing.
func (m *Machine) missed(now mono.Instant) int64 {
	wall, at := m.clocks.unix(now), m.observed.record.At
	if wall == 0 || at == 0 || wall-at > farthest {
		return 0
	}
	return max(0, wall-at)
}

// vacant reports whether no manager can have authority.
func (m *Machine) vacant(now mono.Instant) bool {
	// The leader of a lost history may still have authority, unless that was this process.
	old := m.observed.restored || m.observed.copied() || m.uncertain(now) && !m.observed.doubtful && m.observed.record.Session != m.cfg.Session
	switch {
	case old && now < m.observed.at.Add(m.wait()):
		return false
	case m.observed.record.Version == 0:
		return true
	case m.observed.record.Resigned:
		m.emit(Note{What: NoteResignedSeen, Term: m.observed.record.Term})
		return true
	case m.observed.record.Session == m.cfg.Session:
		m.emit(Note{What: NoteOwnRecord, Term: m.observed.record.Term})
		return true // own record, after stepping down
	}
	wait := m.wait()
	if now < m.observed.at.Add(wait) {
		return false
	}
	m.emit(Note{What: NoteTakeover, Elapsed: now.Sub(m.observed.at), Limit: wait})
	return true
}

// wait is how long the record must be unchanged: the local configuration, but at least the leader's
// own Wait.
func (m *Machine) wait() time.Duration {
	return max(m.cfg.Drift.Stretch(m.cfg.TTL), m.observed.record.Wait)
}

func (m *Machine) swap(now mono.Instant, rec storage.Record) {
	rec.Version = 0
	m.try = &attempt{prev: m.observed.record.Version, rec: rec, sent: now}
	m.emit(Swap{m.try.prev, rec})
}

// handleRecord handles a record from a read or a watch event.
func (m *Machine) handleRecord(now mono.Instant, e Seen) {
	r := e.Record
	restored := r.Version < e.AtLeast && e.AtLeast == m.observed.record.Version
	if m.observed.known() && r.Version < m.observed.record.Version && !restored {
		m.emit(Note{What: NoteOldRecord, Version: r.Version, NewestVersion: m.observed.record.Version})
		return
	}
	if try := m.try; try != nil && (try.doubt || try.wrote(r)) {
		m.resolveBy(now, r)
		return
	}
	if m.try != nil || (m.observed.known() && r.Version == m.observed.record.Version) {
		return // no change, or the outcome of the swap will show it
	}
	m.observe(now, r)
	if m.lead.role == leading {
		m.stepDown(r.Term) // written by another manager
	} else if m.lead.resigns() {
		m.retire() // another manager took over before the resignation
	}
}

// observe records the first observation of a record. A record that is older than the known one
// shows that the store was restored from an old backup in the meantime. The election continues from
// it, but in a term above all known ones.
func (m *Machine) observe(now mono.Instant, r storage.Record) {
	switch {
	case m.observed.known() && earlier(r, m.observed.record):
		m.emit(Note{What: NoteForgotten, Term: m.observed.record.Term, StoreTerm: r.Term})
		m.higher.term, m.higher.floor = max(m.higher.term, m.observed.record.Term), max(m.higher.floor, m.observed.record.Floor)
		m.observed.restored = true
	case m.observed.known() && r.Floor > max(m.observed.record.Floor, m.higher.floor):
		m.observed.doubtful, m.observed.restored, m.observed.stage = false, false, recordWitnessed // its writer had the evidence
	case m.observed.known():
		m.observed.stage = recordWitnessed
	}
	m.observed.record, m.observed.at, m.observed.stage = r, now, max(m.observed.stage, recordRead)
}

// earlier reports whether a record cannot have been written after another one. An identical record
// was not written by a leader: each write has a new beat.
func earlier(r, than storage.Record) bool {
	return r.Term < than.Term || r.Term == than.Term && (r.Session != than.Session || r.Beat <= than.Beat)
}

// wrote reports whether a record is the one of the swap: then the swap has happened.
func (a *attempt) wrote(r storage.Record) bool {
	ours := r
	ours.Version = 0
	return ours == a.rec
}

// resolveBy resolves a swap by the result of a read or a watch event.
func (m *Machine) resolveBy(now mono.Instant, r storage.Record) {
	try := m.try
	switch {
	case try.wrote(r):
		if try.doubt {
			m.emit(Note{What: NoteSwapFound, Version: r.Version})
		}
		m.won(now, r.Version)
	case r.Version == try.prev:
		// It may still arrive, so it is sent again unchanged.
		m.emit(Note{What: NoteSwapRetry, Version: r.Version})
		try.doubt = false
		m.emit(Swap{try.prev, try.rec})
	default:
		m.beaten(now, r)
	}
}

// handleSwapped handles the reply to a swap.
func (m *Machine) handleSwapped(now mono.Instant, e Swapped) {
	if m.try == nil || m.try.doubt || e.Swap != (Swap{m.try.prev, m.try.rec}) {
		return
	}
	if e.Outcome == storage.Done {
		m.won(now, e.Version)
		return
	}
	m.emit(Note{What: NoteSwapUnknown, Outcome: e.Outcome})
	m.try.doubt = true
	m.nextRead = now.Add(m.readBackoff(m.try.fails))
	m.try.fails++
}

// readBackoff is the backoff before the read after a failed swap: none the first time, then
// doubling. It protects a store that rejects all requests immediately.
func (m *Machine) readBackoff(fails int) time.Duration {
	if fails == 0 {
		return 0
	}
	return min(m.cfg.Poll, m.cfg.Poll/16<<min(fails-1, 4))
}

// won handles a successful swap. Authority counts from its first send time.
func (m *Machine) won(now mono.Instant, v storage.Version) {
	try := m.try
	m.try = nil
	rec := try.rec
	rec.Version = v
	overdue := now >= m.lead.until
	m.observe(now, rec)
	m.lead.until = try.sent.Add(m.cfg.TTL)
	m.lead.checked = now
	m.lead.nextRenew = max(try.sent.Add(m.cfg.Renew), now)
	switch {
	case rec.Resigned && m.lead.role == yielding:
		m.lead.role = standby
		m.nextRead = now.Add(m.cfg.Poll)
	case rec.Resigned:
		m.retire()
	case m.lead.resigns():
		m.lead.nextRenew = now
	case rec.Term == m.lead.term && m.lead.role != leading:
		// This manager stepped down while the swap was in flight. A term is led at most once: its
		// state is lost, and its numbers must not be used again.
	case m.lead.role == leading && m.leaderLost(now, try):
		m.emit(Note{What: NoteForgotten, Term: m.higher.term, StoreTerm: rec.Term})
		m.higher.renounced, m.observed.doubtful = now, true
		m.higher.renouncements++
		m.stepDown(m.higher.term)
	case m.lead.role == leading && m.limps(now, overdue):
		m.yield(now, now.Sub(try.sent))
	case m.lead.role == leading:
		if m.lead.lapsed && now < m.lead.until {
			m.emit(Note{What: NoteRegained})
		}
		m.lead.lapsed = now >= m.lead.until
		m.emit(Extend{m.lead.until})
	default:
		m.lead.role, m.lead.lapsed, m.lead.term = leading, false, rec.Term
		m.emit(Note{What: NoteElected, Term: rec.Term})
		late := now.Sub(try.sent) > m.recent() // much may have happened while the outcome was unknown
		m.emit(Lead{rec.Term, m.lead.until, rec.Floor, rec.LostBelow, storage.Clock(rec.At), try.uncertain || late})
		m.leadsAgain(now)
		m.observed.doubtful, m.observed.restored = false, false
	}
}

// leaderLost reports whether the store has lost a leader: a peer has received a term above ours, and
// a renewal sent after that report found no other leader. Terms in a store only increase, unless it
// was restored from an old backup. Peers with the later term reject this leader until it has a
// higher one. They may also be faulty or malicious, so this happens with exponential backoff.
func (m *Machine) leaderLost(now mono.Instant, try *attempt) bool {
	return m.higher.term > try.rec.Term && try.sent >= m.higher.at && (m.higher.renounced == 0 || now >= m.higher.renounced.Add(seldom*m.cfg.TTL<<min(m.higher.renouncements-1, 10)))
}

// beaten handles a swap that lost against another manager's.
func (m *Machine) beaten(now mono.Instant, r storage.Record) {
	m.emit(Note{What: NoteBeaten, Term: r.Term, OwnTerm: m.try.rec.Term})
	m.try = nil
	if m.lead.role == yielding {
		m.lead.role = standby
	}
	m.observe(now, r)
	if m.lead.role == leading {
		m.stepDown(r.Term)
	}
	if m.lead.resigns() {
		m.retire()
	}
	m.nextRead = now.Add(m.cfg.Poll)
}

func (m *Machine) stepDown(by leasehold.Term) {
	m.emit(Note{What: NoteDeposed, Term: by, OwnTerm: m.observed.record.Term})
	m.lead.role, m.lead.lapsed = standby, false
	m.lead.nextRenew = mono.Never
	m.emit(StepDown{})
}

// resign stops leading at once, and then writes the resignation. A swap in flight is awaited: if it
// makes this manager leader, it must resign from that.
func (m *Machine) resign(now mono.Instant) {
	if m.lead.resigns() {
		return
	}
	led := m.lead.role == leading
	m.lead.role = resigning
	m.emit(Note{What: NoteResigning, Term: m.observed.record.Term})
	m.lead.nextRenew = now
	switch {
	case led:
		m.emit(StepDown{})
	case m.try == nil:
		m.retire()
	}
}

// handleOutranked checks in the store whether another manager leads: a leader renews at once, which fails
// if so. If there is none, because the store has lost it, this manager starts a term above the
// reported one.
func (m *Machine) handleOutranked(now mono.Instant, by leasehold.Term) {
	if by <= m.observed.record.Term {
		return
	}
	if by > m.higher.term {
		m.higher.term, m.higher.at = by, now
	}
	if m.lead.role == leading {
		m.lead.nextRenew = min(m.lead.nextRenew, max(now, m.lead.checked.Add(m.cfg.Renew/8)))
		return
	}
	m.nextRead = now
}

// handleSlept invalidates all intervals that began before the local clock stopped: the authority, and
// that of a swap in flight. Waits for other managers only take longer, which is safe.
func (m *Machine) handleSlept(now mono.Instant) {
	m.emit(Note{What: NoteSlept, Term: m.observed.record.Term})
	m.observed.stage, m.clocks.woken = min(m.observed.stage, recordRead), true // the machine may be a copy of an earlier one
	m.nextRead = now
	if m.try != nil {
		m.try.sent = now.Add(-m.cfg.TTL)
	}
	if m.lead.role == leading {
		m.stepDown(m.observed.record.Term)
	}
}

func (m *Machine) retire() {
	if m.lead.role == resigned {
		return
	}
	m.lead.role = resigned
	m.emit(Resigned{})
}
