package byrecord

import (
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// An Event is something that happens to a manager's candidacy.
type Event interface{ electionEvent() }

type (
	// Seen is the record as it was read, or as a watch reported it. It may be
	// old, but it was there once. AtLeast is that of the [Read] which it answers. Wall
	// is what the wall clock says, in seconds since 1970, and Uptime for how long the machine
	// has run; 0 if that is not known. Store is the store that was read.
	Seen struct {
		Record  storage.Record
		AtLeast storage.Version
		Wall    int64
		Uptime  time.Duration
		Store   storage.Identity
	}
	// ReadFailed says that a read was not answered.
	ReadFailed struct{}
	// Swapped answers [Swap], of which Swap is a copy: an answer that arrives after a
	// watch event has shown the record must not count for the next swap. Version is
	// the new record's if it is done.
	Swapped struct {
		Swap    Swap
		Outcome storage.Outcome
		Version storage.Version
	}
	// Outranked says that a peer has heard of someone with a higher term. It
	// is a hint to look: what a peer says must not end a leadership, unless the
	// store knows of nobody else, which is as if it had forgotten them.
	// Manager: it is a manager of the group that says so, from its own memory.
	Outranked struct {
		By      leasehold.Term
		Manager bool
	}
	// Deposed says that the store has a leader with a higher term.
	Deposed struct{ By leasehold.Term }
	// Slept says that our clock may have stood still while others ran on: the
	// computer was suspended.
	Slept struct{}
	// Resign asks to give up leadership, for good.
	Resign struct{}
)

func (Seen) electionEvent()       {}
func (ReadFailed) electionEvent() {}
func (Swapped) electionEvent()    {}
func (Outranked) electionEvent()  {}
func (Deposed) electionEvent()    {}
func (Slept) electionEvent()      {}
func (Resign) electionEvent()     {}

// An Action is something that the shell must do. Actions are done in order.
type Action interface{ electionAction() }

type (
	// Read reads the record; the shell answers with [Seen] or [ReadFailed].
	// Fresh asks for a linearizable read: the record has this version at least, since
	// it was there before.
	Read struct {
		Fresh   bool
		AtLeast storage.Version
	}
	// Swap writes the record if the stored one has version Prev; the shell
	// answers with [Swapped].
	Swap struct {
		Prev storage.Version
		New  storage.Record
	}
	// Lead says that we lead, in a new term, until Until. Tables that are below Floor
	// go on above it. Uncertain: it cannot be excluded that the store was restored from a
	// backup. Tables below LostBelow have lost history for certain. Clock is what the wall
	// clock stands for, 0 if that is not known (see [storage.Clock]).
	Lead struct {
		Term                    leasehold.Term
		Until                   mono.Instant
		Floor, LostBelow, Clock uint64
		Uncertain               bool
	}
	// Extend says that we go on leading until Until.
	Extend struct{ Until mono.Instant }
	// StepDown says that we no longer lead. Where terms are not counted by a store,
	// the next one must be above Above: somebody has heard of that.
	StepDown struct{ Above leasehold.Term }
	// Resigned says that the store knows that we no longer lead.
	Resigned struct{}
	// Note tells the operator, and the counters, what happened and why.
	Note struct {
		What       Notable
		Have, Want uint64
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
	NoteTakeover     Notable = iota // a record stood still for too long: Have how long, Want
	NoteResignedSeen                // a leader has resigned: its place is taken at once
	NoteElected                     // we lead: Have the term
	NoteBeaten                      // someone else was faster
	NoteSwapUnknown                 // the outcome of a swap is not known
	NoteSwapFound                   // a swap of unknown outcome had happened
	NoteSwapRetry                   // a swap of unknown outcome had not happened
	NoteLapsed                      // our authority ran out before we could renew it
	NoteRegained                    // our authority had run out, and nobody had taken over
	NoteDeposed                     // someone else leads: Have their term
	NoteResigning                   // we give up leadership
	NoteDismissed                   // the lease by which we led is over
	NoteOutranked                   // somebody has heard of a higher term: Have
	NoteOldRecord                   // a record older than one seen before was ignored
	NoteSlept                       // our clock stood still: we can no longer tell how long we may act
	NoteOwnRecord                   // the record is our own, from before we stepped down: we start a new term
	NoteForgotten                   // somebody has heard of a term, Have, that the store knows nothing of: it was restored
	NoteUncertain                   // it cannot be excluded that the store was restored: no manager has seen the record change, which is Have seconds old by wall clocks
	NoteDisbelieved                 // an owner has a higher term, Have, which the managers' memory disproves: Want is ours
	NoteLimping                     // our renewals arrive too late: we resign, the last one took Have; the TTL is Want
	NoteFruitless                   // we lead again soon after we resigned because we limped: Have times in a row
	NoteCopied                      // the record, of term Have, was written to another store: this one was made from a backup
	notables
)

var notableNames = [notables]string{
	"takeover", "resignation seen", "elected", "beaten", "swap unknown", "swap found", "swap retried",
	"authority lapsed", "authority regained", "deposed", "resigning", "dismissed", "outranked", "old record", "slept", "own record", "forgotten", "uncertain",
	"disbelieved", "limping", "resignation fruitless", "record copied",
}

func (n Notable) String() string { return notableNames[n] }

// Notables returns how many there are: they number from 0.
func Notables() int { return int(notables) }

// Config is what a manager knows about its group.
type Config struct {
	Self storage.ManagerID
	// Session is random, and new with every start of the process.
	Session leasehold.Session
	// Boot names the boot of the machine; empty if that is not known.
	Boot string
	// TTL is for how long a leader acts without renewing. Shorter means faster
	// failover; longer means that a slow store does not end a leadership.
	// Default 3 s.
	TTL time.Duration
	// Renew is how often the leader renews. Default TTL/3.
	Renew time.Duration
	// Poll is how often a standby looks, where the watch does not tell it.
	// Default TTL/6.
	Poll time.Duration
	// Drift bounds how clocks differ in rate. Default 1.20.
	Drift mono.Drift
	// Rand draws jitter.
	Rand *rand.Rand
}

func (c *Config) validate() error {
	if c.TTL == 0 {
		c.TTL = 3 * time.Second
	}
	if c.Renew == 0 {
		c.Renew = c.TTL / 3
	}
	if c.Poll == 0 {
		c.Poll = c.TTL / 6
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

// seldom is how many times the TTL is a long time. Clocks that differ by farthest seconds, eight years, cannot both
// be right.
const (
	seldom   = 20
	farthest = 1 << 28
)

// attempt is a swap that has been sent and not resolved.
type attempt struct {
	prev storage.Version
	rec  storage.Record
	// sent is when it was first sent: authority counts from there.
	sent      mono.Instant
	doubt     bool // its outcome is unknown: read
	fails     int  // how often it was
	uncertain bool // the store may have lost history
}

// A Machine is one manager's part in the election. It is not safe for
// concurrent use. The actions that Step and Advance return are valid until the
// next call.
type Machine struct {
	cfg Config
	out []Action

	observed observation // the record
	clocks   hostClocks  // the wall clock and the uptime of the machine
	higher   higherTerm  // terms that others have heard of
	nextRead mono.Instant
	try      *attempt   // to write the record; nil if none is under way
	lead     leadership // our own part
	limp     limp
}

// New returns a standby that looks at once who leads.
func New(now mono.Instant, cfg Config) (*Machine, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Machine{cfg: cfg, nextRead: now, lead: leadership{nextRenew: mono.Never}}, nil
}

// Leader returns who leads and in which term, as far as we know.
func (m *Machine) Leader() (storage.ManagerID, leasehold.Term) {
	if m.observed.record.Resigned {
		return "", m.observed.record.Term
	}
	return m.observed.record.Leader, m.observed.record.Term
}

// Stale reports whether the leader, whoever it is, has not been seen to live for
// as long as it may act.
func (m *Machine) Stale(now mono.Instant) bool {
	if m.lead.role == leading {
		return now >= m.lead.until
	}
	return !m.observed.known() || m.observed.record.Resigned || now >= m.observed.at.Add(m.wait())
}

// Drift returns the bound on how clocks differ in rate.
func (m *Machine) Drift() mono.Drift { return m.cfg.Drift }

// Leads reports whether we act as leader at now.
func (m *Machine) Leads(now mono.Instant) bool { return m.lead.role == leading && now < m.lead.until }

// Step handles an event that happened at now, and all time that has passed.
// It returns what to do, in order, and when to call Advance at the latest.
func (m *Machine) Step(now mono.Instant, e Event) ([]Action, mono.Instant) {
	m.out = m.out[:0]
	switch e := e.(type) {
	case Seen:
		if e.Wall != 0 {
			m.clocks.wall, m.clocks.wallAt = e.Wall, now
		}
		m.clocks.uptime, m.clocks.uptimeAt, m.observed.store = e.Uptime, now, e.Store
		m.seen(now, e)
	case ReadFailed:
	case Swapped:
		m.swapped(now, e)
	case Outranked:
		m.outranked(now, e.By)
	case Deposed:
		m.nextRead = now
		m.higher.term = max(m.higher.term, e.By)
		if m.lead.role == leading && e.By > m.observed.record.Term {
			m.stepDown(e.By)
		}
	case Slept:
		m.slept(now)
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

func (m *Machine) note(what Notable, have, want uint64) { m.emit(Note{what, have, want}) }

func (m *Machine) finish(now mono.Instant) ([]Action, mono.Instant) {
	if m.lead.role == resigned {
		return m.out, mono.Never
	}
	if m.lead.role == leading && !m.lead.lapsed && now >= m.lead.until {
		m.lead.lapsed = true
		m.note(NoteLapsed, uint64(now), uint64(m.lead.until))
	}
	switch {
	case m.try != nil:
		m.resolve(now)
	case m.lead.role != standby:
		m.renew(now)
	default:
		m.stand(now)
	}
	return m.out, m.alarm(now)
}

// alarm is when time alone makes a difference.
func (m *Machine) alarm(now mono.Instant) mono.Instant {
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

// resolve reads again while a swap is in doubt.
func (m *Machine) resolve(now mono.Instant) {
	if m.try.doubt && now >= m.nextRead {
		m.nextRead = now.Add(m.cfg.Poll)
		m.emit(Read{Fresh: true, AtLeast: m.observed.record.Version})
	}
}

// renew swaps in a new beat, or our resignation.
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

// stand watches the leader, and takes over when it has stood still.
func (m *Machine) stand(now mono.Instant) {
	if m.observed.known() && m.fresh(now) && now >= m.standsBackUntil() && m.vacant(now) {
		m.candidate(now)
		return
	}
	if now >= m.nextRead {
		m.nextRead = now.Add(m.cfg.Poll - time.Duration(m.cfg.Rand.Int64N(int64(m.cfg.Poll/8)+1)))
		m.emit(Read{})
	}
}

// fresh reports whether the record was read a short while ago. A manager that was stopped for
// long reads it again before it takes over: its wall clock, which runs on at the rate of the
// monotonic one between two reads, may be wrong by hours.
func (m *Machine) fresh(now mono.Instant) bool { return now.Sub(m.clocks.uptimeAt) <= m.recent() }

// candidate tries to take over. If the store may have lost history, all numbers go on above
// what may have been lost. That is stored with the record, so that it counts for every later
// leader. The term is above all that there can have been, one a second; owners that know a
// higher one say so.
func (m *Machine) candidate(now mono.Instant) {
	uncertain, restored := m.uncertain(now), m.observed.restored || m.observed.copied()
	if m.observed.copied() {
		m.note(NoteCopied, uint64(m.observed.record.Term), 0)
	}
	missed := int64(0)
	if uncertain {
		missed = m.missed(now)
		m.note(NoteUncertain, uint64(missed), 0)
	}
	rec := storage.Record{
		Term: max(m.observed.record.Term+leasehold.Term(missed), m.higher.term) + 1, Leader: m.cfg.Self, Session: m.cfg.Session, Beat: 1,
		Wait: m.cfg.Drift.Stretch(m.cfg.TTL), Floor: m.observed.record.Floor, LostBelow: m.observed.record.LostBelow,
	}
	m.stamp(now, &rec)
	if uncertain {
		rec.Floor = storage.Above(rec.Floor, storage.Clock(rec.At), rec.Term)
	}
	if restored {
		rec.LostBelow = rec.Floor
	}
	m.swap(now, rec)
	m.try.uncertain = uncertain
}

// stamp says in a record when and where it is written.
func (m *Machine) stamp(now mono.Instant, r *storage.Record) {
	r.At, r.Boot, r.Uptime, r.Store = m.clocks.unix(now), "", 0, m.observed.store
	if up := m.clocks.upFor(now); up > 0 && m.cfg.Boot != "" {
		r.Boot, r.Uptime = m.cfg.Boot, up
	}
}

// uncertain reports whether the store may have been restored from a backup: nobody knows how
// old the record is. A manager that has seen it change knows. So does one that was started
// after its writer on the same boot of the same machine, and a backup that is younger than a
// minute is not restored. Wall clocks prove nothing.
func (m *Machine) uncertain(now mono.Instant) bool {
	if m.observed.record.Version == 0 {
		return false
	}
	witnessed := m.observed.stage == recordWitnessed && now.Sub(m.observed.at) <= m.recent()
	return m.observed.doubtful || m.observed.restored || m.observed.copied() || !witnessed && !m.young(now)
}

// replaced reports whether the record was written by this manager, and its data directory was
// replaced by a copy since. The copy may be as new as the original.
func (m *Machine) replaced() bool {
	return m.observed.record.Leader == m.cfg.Self && differ(m.observed.record.Store.Directory, m.observed.store.Directory)
}

// differ reports whether two names are known and differ.
func differ(a, b string) bool { return a != "" && b != "" && a != b }

// young reports whether the record was written on this boot of this machine, a short while ago.
func (m *Machine) young(now mono.Instant) bool {
	up := m.clocks.upFor(now)
	if up == 0 || m.cfg.Boot == "" || m.observed.record.Boot != m.cfg.Boot || m.clocks.woken || m.replaced() {
		return false
	}
	age := up - m.observed.record.Uptime
	if age < 0 || age > m.recent() {
		return false
	}
	// A machine that was reverted to an earlier state has an earlier uptime, too. Its wall clock
	// is set anew, and does not agree with that. If it is wrong, that costs a wait.
	wall, at := m.clocks.unix(now), m.observed.record.At
	return wall == 0 || at == 0 || (time.Duration(wall-at)*time.Second-age).Abs() <= time.Minute
}

// recent is how old a record is at most if the group has been without a leader for no longer
// than failovers take.
func (m *Machine) recent() time.Duration { return max(time.Minute, seldom*m.wait()) }

// missed returns how many seconds ago the record was written, by wall clocks. It chooses a
// number, and proves nothing.
func (m *Machine) missed(now mono.Instant) int64 {
	wall, at := m.clocks.unix(now), m.observed.record.At
	if wall == 0 || at == 0 || wall-at > farthest {
		return 0
	}
	return max(0, wall-at)
}

// vacant reports whether nobody can be leading.
func (m *Machine) vacant(now mono.Instant) bool {
	// Whoever led in a history that was lost may lead on for its time, unless that was we.
	old := m.observed.restored || m.observed.copied() || m.uncertain(now) && !m.observed.doubtful && m.observed.record.Session != m.cfg.Session
	switch {
	case old && now < m.observed.at.Add(m.wait()):
		return false
	case m.observed.record.Version == 0:
		return true
	case m.observed.record.Resigned:
		m.note(NoteResignedSeen, uint64(m.observed.record.Term), 0)
		return true
	case m.observed.record.Session == m.cfg.Session:
		m.note(NoteOwnRecord, uint64(m.observed.record.Term), 0)
		return true // it is ours, and we have stepped down
	}
	wait := m.wait()
	if now < m.observed.at.Add(wait) {
		return false
	}
	m.note(NoteTakeover, uint64(now.Sub(m.observed.at)), uint64(wait))
	return true
}

// wait is how long the record must stand still: as long as we think, and no
// less than its leader says.
func (m *Machine) wait() time.Duration {
	return max(m.cfg.Drift.Stretch(m.cfg.TTL), m.observed.record.Wait)
}

func (m *Machine) swap(now mono.Instant, rec storage.Record) {
	rec.Version = 0
	m.try = &attempt{prev: m.observed.record.Version, rec: rec, sent: now}
	m.emit(Swap{m.try.prev, rec})
}

// seen takes in a record that was read or watched.
func (m *Machine) seen(now mono.Instant, e Seen) {
	r := e.Record
	restored := r.Version < e.AtLeast && e.AtLeast == m.observed.record.Version
	if m.observed.known() && r.Version < m.observed.record.Version && !restored {
		m.note(NoteOldRecord, uint64(r.Version), uint64(m.observed.record.Version))
		return
	}
	if try := m.try; try != nil && (try.doubt || try.wrote(r)) {
		m.settle(now, r)
		return
	}
	if m.try != nil || (m.observed.known() && r.Version == m.observed.record.Version) {
		return // nothing new, or the outcome of our swap will tell
	}
	m.observe(now, r)
	if m.lead.role == leading {
		m.stepDown(r.Term) // we did not write it
	} else if m.lead.resigns() {
		m.retire() // someone took over before we could resign
	}
}

// observe remembers a record as first seen now. One that was written before the one that we
// know shows that the store was restored from an old backup while we were there. It is where
// we go on from, but in a term above all that we know of.
func (m *Machine) observe(now mono.Instant, r storage.Record) {
	switch {
	case m.observed.known() && earlier(r, m.observed.record):
		m.note(NoteForgotten, uint64(m.observed.record.Term), uint64(r.Term))
		m.higher.term = max(m.higher.term, m.observed.record.Term)
		m.observed.restored = true
	case m.observed.known() && r.Floor > m.observed.record.Floor:
		m.observed.doubtful, m.observed.restored, m.observed.stage = false, false, recordWitnessed // whoever wrote it knows
	case m.observed.known():
		m.observed.stage = recordWitnessed
	}
	m.observed.record, m.observed.at, m.observed.stage = r, now, max(m.observed.stage, recordRead)
}

// earlier reports whether a record cannot have been written after another one. One that says
// the same was not written by a leader: each of its writes has a new beat.
func earlier(r, than storage.Record) bool {
	return r.Term < than.Term || r.Term == than.Term && (r.Session != than.Session || r.Beat <= than.Beat)
}

// wrote reports whether a record is what the swap writes: then it has happened, whatever
// else is known of it.
func (a *attempt) wrote(r storage.Record) bool {
	ours := r
	ours.Version = 0
	return ours == a.rec
}

// settle resolves a swap by what a read or a watch has found.
func (m *Machine) settle(now mono.Instant, r storage.Record) {
	try := m.try
	switch {
	case try.wrote(r):
		if try.doubt {
			m.note(NoteSwapFound, uint64(r.Version), 0)
		}
		m.won(now, r.Version)
	case r.Version == try.prev:
		// It may still arrive: so it is sent again just as it was.
		m.note(NoteSwapRetry, uint64(r.Version), 0)
		try.doubt = false
		m.emit(Swap{try.prev, try.rec})
	default:
		m.beaten(now, r)
	}
}

// swapped handles the outcome of our swap.
func (m *Machine) swapped(now mono.Instant, e Swapped) {
	if m.try == nil || m.try.doubt || e.Swap != (Swap{m.try.prev, m.try.rec}) {
		return
	}
	if e.Outcome == storage.Done {
		m.won(now, e.Version)
		return
	}
	m.note(NoteSwapUnknown, uint64(e.Outcome), 0)
	m.try.doubt = true
	m.nextRead = now.Add(m.forbearance(m.try.fails))
	m.try.fails++
}

// forbearance is how long to wait before a swap that failed so often is looked
// into: not at all the first time, and longer each time after that. A store that
// refuses everything at once is not to be asked a thousand times a second.
func (m *Machine) forbearance(fails int) time.Duration {
	if fails == 0 {
		return 0
	}
	return min(m.cfg.Poll, m.cfg.Poll/16<<min(fails-1, 4))
}

// won makes our swap count, from when it was first sent.
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
		// We stepped down while it was under way. A term is led once: what we
		// said in it is forgotten, and its numbers must not be used again.
	case m.lead.role == leading && m.forgotten(now, try):
		m.note(NoteForgotten, uint64(m.higher.term), uint64(rec.Term))
		m.higher.renounced, m.observed.doubtful = now, true
		m.higher.renouncements++
		m.stepDown(m.higher.term)
	case m.lead.role == leading && m.limps(now, overdue):
		m.yield(now, now.Sub(try.sent))
	case m.lead.role == leading:
		if m.lead.lapsed && now < m.lead.until {
			m.note(NoteRegained, rec.Beat, 0)
		}
		m.lead.lapsed = now >= m.lead.until
		m.emit(Extend{m.lead.until})
	default:
		m.lead.role, m.lead.lapsed, m.lead.term = leading, false, rec.Term
		m.note(NoteElected, uint64(rec.Term), 0)
		late := now.Sub(try.sent) > m.recent() // much may have happened while the swap was in doubt
		m.emit(Lead{rec.Term, m.lead.until, rec.Floor, rec.LostBelow, storage.Clock(rec.At), try.uncertain || late})
		m.leadsAgain(now)
		m.observed.doubtful, m.observed.restored = false, false
	}
}

// forgotten reports whether the store has forgotten a leader: somebody has heard of a term above ours,
// and a renewal that we sent after that has found nobody but us. Terms in a store only rise, unless
// it was restored from an old backup. Those who know the later term do not listen to us until we have one above it.
// They may also be mistaken, or lie: so we do that only now and then, and ever more rarely.
func (m *Machine) forgotten(now mono.Instant, try *attempt) bool {
	return m.higher.term > try.rec.Term && try.sent >= m.higher.at && (m.higher.renounced == 0 || now >= m.higher.renounced.Add(seldom*m.cfg.TTL<<min(m.higher.renouncements-1, 10)))
}

// beaten handles the loss of a swap to someone else's.
func (m *Machine) beaten(now mono.Instant, r storage.Record) {
	m.note(NoteBeaten, uint64(r.Term), uint64(m.try.rec.Term))
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
	m.note(NoteDeposed, uint64(by), uint64(m.observed.record.Term))
	m.lead.role, m.lead.lapsed = standby, false
	m.lead.nextRenew = mono.Never
	m.emit(StepDown{})
}

// resign stops leading at once, and then lets the store know. A swap under way
// is waited for: if it makes us leader, we must resign from that.
func (m *Machine) resign(now mono.Instant) {
	if m.lead.resigns() {
		return
	}
	led := m.lead.role == leading
	m.lead.role = resigning
	m.note(NoteResigning, uint64(m.observed.record.Term), 0)
	m.lead.nextRenew = now
	switch {
	case led:
		m.emit(StepDown{})
	case m.try == nil:
		m.retire()
	}
}

// outranked asks the store whether someone else leads: a leader by renewing at
// once, which fails if so. If there is nobody, because the store forgot them,
// our next term is above theirs, and begins at once.
func (m *Machine) outranked(now mono.Instant, by leasehold.Term) {
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

// slept ends whatever counts from an instant before our clock stood still: our
// authority, and the one that a swap under way would bring. Waiting for others
// only takes longer, which is safe.
func (m *Machine) slept(now mono.Instant) {
	m.note(NoteSlept, uint64(m.observed.record.Term), 0)
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
