package manager

import (
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/changelog"
	"github.com/leasehold-dev/leasehold/internal/keyrange"
	"github.com/leasehold-dev/leasehold/internal/mono"
	"github.com/leasehold-dev/leasehold/internal/protocol"
	"github.com/leasehold-dev/leasehold/internal/storage"
	"github.com/leasehold-dev/leasehold/internal/table"
	"github.com/leasehold-dev/leasehold/partition"
)

// A Machine leads one namespace for one term. It is not safe for concurrent
// use. The actions that Step and Advance return are valid until the next call.
type Machine struct {
	cfg  Config
	out  []Action
	term leasehold.Term
	// authority is when our time as leader ends, unless it is extended.
	authority mono.Instant
	// deafUntil is until when time without authority was added to the owners' deadlines.
	deafUntil mono.Instant
	begun     bool
	over      bool
	seq       protocol.Seq // our newest message to anyone

	table *table.Table // committed
	log   *changelog.Log
	// snapshot is the table as lookups get it; nil if it must be copied again.
	snapshot *table.Table
	// unsaved counts changes since the store's last snapshot.
	unsaved int

	sessions map[leasehold.Session]*peer
	// duplicates are sessions in which two processes speak.
	duplicates map[leasehold.Session]*duplicate
	seats      []*seat // sorted by owner
	heard      int     // sessions that have spoken to us, not only to our predecessors
	// inherited is how many sessions we found in the table.
	inherited int
	// named is how many of them the table named.
	named int
	// inheritUntil is until when leases that we found may be held by owners that
	// we have not heard.
	inheritUntil mono.Instant
	// outage: no owner is heard, and those whose time is over are kept, because no other could
	// take their ranges (see outage.go). heardAt is when an owner was last heard, and returnedAt
	// when one was that we knew before.
	outage              bool
	heardAt, returnedAt mono.Instant
	// fullUntil: until then, no session is added (see makeRoom).
	fullUntil mono.Instant
	// census is where we come from, if we have asked the owners what there is; nil
	// if we have not, and once it was made use of.
	census *Census

	current partition.Assignment
	desired *keyrange.Map[*seat] // current, by seat; nil means nobody
	// reasons is why desired is what it is, and occasion why the policy is to be asked
	// again. They are for people.
	reasons  *keyrange.Map[table.Reason]
	occasion table.Reason
	// replan: members have changed since desired was worked out.
	replan bool
	// replanAt is not earlier than when the policy may be asked again.
	replanAt mono.Instant
	// gatherUntil is for how long those who join are waited for, in the hope
	// that more do; 0 if nobody is.
	gatherUntil mono.Instant
	// drawnAt is when the policy was last asked because of members.
	drawnAt mono.Instant
	// rescan: the table has not been compared with desired yet.
	rescan bool
	// touched are peers that may have to be told something.
	touched []*peer

	moves []*move
	// ready are sources of which a move may be able to begin.
	ready   []*peer
	parting []*peer // those who want to leave
	// again: what is left of a move has to be looked at when something has ended.
	again bool
	// amended: desired differs from current, because a move has failed or an
	// operator has asked for one.
	amended bool
	// rescanAt is when to compare the table with the plan again.
	rescanAt mono.Instant
	churn    churn
	// unlimited: an operator wants the next plan to be made without regard to
	// the churn budget.
	unlimited bool

	// found is what the store had when we took over. The table is to go on at base, after a
	// gap, because the store may have lost history; 0 if that is not so, or the gap is stored.
	// proven: it has lost history. unmarked: only we know that. marked: the table has a gap
	// that is to be widened. decideAt is when the gap is stored for good: no lease that the
	// table does not know of is valid any more.
	decideAt mono.Instant
	found    ending
	since    mono.Instant // when that was
	base     uint64
	proven   bool
	unmarked bool
	marked   bool

	compacted leasehold.LSN // the table that we last tried to make smaller
	mendAt    mono.Instant  // not earlier than when to try again

	freed []freed // to be recorded, and then granted anew
	// everFreed and recorded count leases that have ended: all of them, and
	// those of which the table says so. They are recorded in order.
	everFreed, recorded uint64
	goodbyes            []goodbye

	// unconfirmed are moves that are recorded, while the target has not said that
	// it has the lease: ticket to the source. Only of a leader whose table dies
	// with it.
	unconfirmed map[protocol.Ticket]leasehold.Session

	batch      *storage.Batch // under way; nil if none is
	batchTable *table.Table   // the table with its changes
	// batchFreed is what of freed the batch records.
	batchFreed []freed
	// batchTickets are the tickets of the leases that the batch moves.
	batchTickets map[leasehold.Generation]protocol.Ticket
	sentAt       mono.Instant // when it was first sent
	doubt        bool         // its outcome is unknown
	fails        int          // how often it was unknown
	reread       mono.Instant // when to read the log's end again

	wake mono.Instant // no deadline is earlier
}

// An ending is where a log ends, and the newest generation that was given out by then.
type ending struct {
	lsn        leasehold.LSN
	generation leasehold.Generation
}

// freed is a lease that has ended, which the table does not say yet.
type freed struct {
	leasehold.Lease
	holder *table.Holder
	cause  leasehold.Cause
	moved  *transfer // where its state is; nil if it is lost
}

// New returns the machine of a leader that took over before now, in term, and
// may act until authority. The state must have been read after the takeover.
// Advance it at once.
//
// Every lease in the table counts as held until its holder could no longer
// have been renewed by an earlier leader.
func New(now mono.Instant, cfg Config, term leasehold.Term, authority mono.Instant, state *storage.State) (*Machine, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	t, err := state.Replay()
	if err != nil {
		return nil, err
	}
	m := &Machine{
		cfg: cfg, term: term, authority: authority, table: t,
		sessions: make(map[leasehold.Session]*peer),
		desired:  keyrange.NewMap[*seat](nil),
		reasons:  keyrange.NewMap(table.NoReason),
		reread:   mono.Never, wake: mono.Never, rescanAt: mono.Never, replan: true, unsaved: len(state.Changes),
	}
	m.seq, m.found, m.since = cfg.FirstSeq, ending{t.LSN(), m.newest()}, now
	m.suspect(state.Unfinished)
	m.log = changelog.New(t.LSN()-leasehold.LSN(len(state.Changes)), cfg.LogChanges, cfg.LogAge)
	m.log.Append(now, state.Changes)
	return m, nil
}

// begin starts every step. The first one takes over: from here on we judge who
// is alive, so that nobody's time starts before we can listen.
func (m *Machine) begin(now mono.Instant) {
	m.out = emptied(m.out)
	if !m.begun {
		m.begun = true
		m.churn.begin(now)
		m.inherit(now)
		m.redraw(now)
	}
	m.expire(now)
}

// inherit makes a peer of every session that the table names, and takes the
// table for the assignment in force.
func (m *Machine) inherit(now mono.Instant) {
	until := now.Add(max(m.cfg.Timing.Hold(), m.cfg.Promised))
	m.inheritUntil, m.decideAt = until, until
	m.wakeAt(until)
	for r, e := range m.table.All() {
		if e.Vacant() {
			continue
		}
		p := m.sessions[e.Holder.Session]
		if p == nil {
			p = newInheritedPeer(e.Holder, until)
			if m.census != nil {
				p.renewal.until = m.census.until(e.Holder.Session)
				m.wakeAt(p.renewal.until)
			}
			m.sessions[e.Holder.Session] = p
			m.inherited++
		}
		p.held.leases = append(p.held.leases, leasehold.Lease{Range: r, Generation: e.Generation})
	}
	for r, e := range m.table.All() {
		if e.Vacant() {
			m.current = m.current.Append(r.Start, "")
			continue
		}
		m.current = m.current.Append(r.Start, e.Holder.Owner)
		if m.sessions[e.Holder.Session].seat != nil {
			continue
		}
		p := m.sessions[e.Holder.Session]
		s := m.seat(e.Holder.Owner)
		if s.incumbent != nil {
			m.note(NoteGhost, s.owner, 0, 0)
			if newestOf(s.incumbent) > newestOf(p) {
				continue
			}
			s.incumbent.seat = nil
		}
		s.incumbent, p.seat = p, s
	}
	m.named = m.inherited
	if m.census != nil {
		m.heardAt, m.returnedAt = now, now // the census has heard owners
		m.resumeHandovers(now)
	}
}

// resumeHandovers goes on with what owners have handed over while nobody led.
func (m *Machine) resumeHandovers(now mono.Instant) {
	for _, h := range m.census.handovers() {
		if p := m.sessions[h.from.Session]; p != nil {
			m.bequeath(now, p, []protocol.MoveReport{h.MoveReport}, leasehold.CauseReleased)
		}
	}
	m.census = nil
}

func newestOf(p *peer) leasehold.Generation {
	var g leasehold.Generation
	for _, l := range p.held.leases {
		g = max(g, l.Generation)
	}
	return g
}

// reconfigure goes on with another configuration of the same namespace. What
// was promised to whoever is heard stays promised: no deadline is moved up. If
// leases become longer, deadlines are moved out, because what we say from now on
// promises the longer time from a request that we accepted before.
func (m *Machine) reconfigure(now mono.Instant, cfg Config) {
	cfg.Namespace, cfg.Self, cfg.Rand = m.cfg.Namespace, m.cfg.Self, m.cfg.Rand
	cfg.Floor, cfg.LostBelow, cfg.Clock, cfg.Uncertain = m.cfg.Floor, m.cfg.LostBelow, m.cfg.Clock, m.cfg.Uncertain
	if err := cfg.validate(); err != nil {
		panic(err) // whoever stores a configuration has it checked
	}
	longer := cfg.Timing.Hold() > m.cfg.Timing.Hold()
	m.cfg = cfg
	if longer {
		for _, p := range m.sessions {
			p.renewal.until = max(p.renewal.until, now.Add(m.patience(p)))
			if p.renewal.due != 0 {
				p.renewal.due = p.renewal.until // a message that is sent now promises the longer time, too
			}
		}
	}
	m.log.Limit(now, cfg.LogChanges, cfg.LogAge)
	m.replan, m.occasion = true, table.Configured
	m.wake = now
}

// Empty reports whether nobody holds anything, and the store knows it.
func (m *Machine) Empty() bool {
	return m.begun && len(m.sessions) == 0 && len(m.freed) == 0 && m.batch == nil
}

// Frozen returns the committed table as a value that stays as it is.
func (m *Machine) Frozen() *table.Table { return m.frozen() }

// Members returns how many owners take part.
func (m *Machine) Members() int {
	n := 0
	for _, s := range m.seats {
		if s.incumbent.member() && s.incumbent.acks.echo != 0 {
			n++
		}
	}
	return n
}

// Seq returns the number of our newest message to anyone.
func (m *Machine) Seq() protocol.Seq { return m.seq }

// Term returns the leader's term.
func (m *Machine) Term() leasehold.Term { return m.term }

// Table returns the committed table, which must not be changed. It is valid
// until the next call.
func (m *Machine) Table() *table.Table { return m.table }

// Sizes says how much the machine holds: everything in it that can grow.
type Sizes struct {
	Sessions  int // known
	Inherited int // of which were found in the table at takeover
	Heard     int // of which have spoken to us
	Seats     int
	Ranges    int // of the table
	Planned   int // of the assignment worked towards
	Reasons   int // ranges of it that have different reasons
	Log       int // changes kept for lookups
	Freed     int // leases that have ended, not recorded yet
	Moves     int // under way
	Backlog   int // moves that have not begun
	Actions   int // room for them
}

// Sizes returns the current sizes.
func (m *Machine) Sizes() Sizes {
	return Sizes{
		Sessions: len(m.sessions), Inherited: m.inherited, Heard: m.heard, Seats: len(m.seats),
		Ranges: m.table.Len(), Planned: m.desired.Len(), Reasons: m.reasons.Len(), Log: m.log.Len(), Freed: len(m.freed),
		Moves: len(m.moves), Backlog: m.waiting(), Actions: cap(m.out),
	}
}

// waiting is how many moves have not begun.
func (m *Machine) waiting() int {
	n := 0
	for _, s := range m.seats {
		n += len(s.incumbent.moves.backlog)
	}
	return n
}

// Step handles an event that happened at now, and all time that has passed.
// It returns what to do, in order, and when to call Advance at the latest.
func (m *Machine) Step(now mono.Instant, e Event) ([]Action, mono.Instant) {
	if m.over {
		return nil, mono.Never
	}
	m.begin(now)
	switch e := e.(type) {
	case Request:
		m.request(now, e.LeaseRequest)
	case Lookup:
		m.lookup(now, e.LookupRequest)
	case Authority:
		m.extend(now, e.Until)
	case Committed:
		m.committed(now, e.Outcome)
	case LogEnd:
		m.logEnd(now, e)
	case Reconfigured:
		m.reconfigure(now, e.Config)
	case Order:
		m.order(now, e)
	}
	return m.finish(now)
}

// Advance handles the passing of time.
func (m *Machine) Advance(now mono.Instant) ([]Action, mono.Instant) {
	if m.over {
		return nil, mono.Never
	}
	m.begin(now)
	return m.finish(now)
}

// emptied returns an empty slice to fill again, without what it pointed to. A
// large one, which a rare event needed, is given up.
func emptied[T any](s []T) []T {
	const usual = 1024
	if cap(s) > usual {
		return nil
	}
	clear(s)
	return s[:0]
}

func (m *Machine) finish(now mono.Instant) ([]Action, mono.Instant) {
	if m.over {
		return m.out, mono.Never
	}
	if now >= m.reread {
		m.reread = mono.Never
		m.emit(ReadEnd{})
	}
	if !m.leads(now) {
		return m.out, m.reread // nothing else to do until we lead again
	}
	m.plan(now)
	m.noticeIdle(now)
	m.tellTouched(now)
	m.sayGoodbyes(now)
	return m.out, min(m.wake, m.reread)
}

func (m *Machine) emit(a Action) { m.out = append(m.out, a) }

func (m *Machine) note(what Notable, owner leasehold.OwnerID, have, want uint64) {
	m.emit(Note{What: what, Owner: owner, Have: have, Want: want})
}

// deposed ends the machine.
func (m *Machine) deposed(by leasehold.Term) {
	m.over = true
	m.emit(Deposed{by})
}

// leads reports whether we may act as leader at now.
func (m *Machine) leads(now mono.Instant) bool { return now < m.authority }

func (m *Machine) wakeAt(at mono.Instant) { m.wake = min(m.wake, at) }

func (m *Machine) backoff() time.Duration {
	return time.Duration(m.cfg.Rand.Int64N(int64(m.cfg.Backoff) + 1))
}

// seat returns the seat of an owner's name, making one if there is none.
func (m *Machine) seat(owner leasehold.OwnerID) *seat {
	i, found := m.findSeat(owner)
	if !found {
		m.seats = slices.Insert(m.seats, i, &seat{owner: owner})
	}
	return m.seats[i]
}

func (m *Machine) findSeat(owner leasehold.OwnerID) (int, bool) {
	return slices.BinarySearchFunc(m.seats, owner, func(s *seat, o leasehold.OwnerID) int {
		return strings.Compare(string(s.owner), string(o))
	})
}

// expire ends what has run out of time. A leader without authority must not
// judge others: they may well have spoken to its successor.
func (m *Machine) expire(now mono.Instant) {
	if now < m.wake || !m.leads(now) {
		return
	}
	m.wake = mono.Never
	for _, s := range slices.Clone(m.seats) {
		if p := s.contender; p != nil && now >= p.renewal.until {
			m.remove(p, leasehold.CauseExpired)
		}
		if s.replaced(now) || m.forfeited(now, s.incumbent) {
			m.expireIncumbent(s)
		}
	}
	if !m.keepSilent(now) {
		m.expireSilent(now)
	}
	m.noticeOutage(now)
	for _, s := range m.seats {
		for _, p := range []*peer{s.incumbent, s.contender} {
			m.rouse(now, p)
		}
	}
	for _, p := range m.ghosts() {
		m.wakeAtDeadline(now, p)
	}
	m.overdueMoves(now)
	if m.batch != nil || m.doubted() {
		return // the end of that is the time for everything else
	}
	m.wakeAt(m.rescanAt)
	m.wakeAt(m.churn.next)
	if now < m.mendAt {
		m.wakeAt(m.mendAt)
	}
	if m.replan {
		m.wakeAt(max(m.replanAt, m.gatherUntil))
	}
}

// rouse sends what a race has delayed and sets the alarm for what is next.
func (m *Machine) rouse(now mono.Instant, p *peer) {
	if p == nil {
		return
	}
	if now >= p.acks.resendAt {
		p.acks.resendAt = mono.Never
		m.tell(now, p)
	}
	m.wakeAt(p.acks.resendAt)
	m.wakeAtDeadline(now, p)
}

// ghosts returns the sessions without a seat that still have leases, in a
// fixed order. There are hardly ever any.
func (m *Machine) ghosts() []*peer {
	seated := 0
	for _, s := range m.seats {
		if s.incumbent != nil {
			seated++
		}
		if s.contender != nil {
			seated++
		}
	}
	if seated == len(m.sessions) {
		return nil
	}
	var out []*peer
	for _, p := range m.sessions {
		if p.seat == nil {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *peer) int { return slices.Compare(a.holder.Session[:], b.holder.Session[:]) })
	return out
}

// remove ends a peer and all its leases, and seats whoever waits for its name.
func (m *Machine) remove(p *peer, cause leasehold.Cause) {
	for _, l := range p.held.leases {
		m.free(freed{Lease: l, holder: p.holder, cause: cause})
	}
	p.held.setLeases(nil)
	m.endMoves(p)
	m.receivedBy(p, nil)
	wasMember := p.member()
	m.forget(p)
	if s := p.seat; s != nil && wasMember {
		m.lostMember(table.Gone)
	}
}

// forget removes a peer that has no leases.
func (m *Machine) forget(p *peer) {
	delete(m.sessions, p.holder.Session)
	if p.acks.echo != 0 {
		m.heard--
	}
	s := p.seat
	if s == nil {
		return
	}
	if s.contender == p {
		s.contender = nil
		return
	}
	s.incumbent, s.contender = s.contender, nil
	if s.incumbent == nil {
		s.gone = true
		i, _ := m.findSeat(s.owner)
		m.seats = slices.Delete(m.seats, i, i+1)
		return
	}
	m.note(NoteSuccessor, s.owner, 0, 0)
	// What it is given now counts from the request that it spoke last.
	s.incumbent.renewal.until = max(s.incumbent.renewal.until, s.incumbent.renewal.heard.Add(m.patience(s.incumbent)))
	if s.incumbent.acks.proven {
		m.replan, m.occasion = true, table.Joined
		m.touch(s.incumbent)
	}
}

func (m *Machine) free(f freed) {
	m.freed = append(m.freed, f)
	m.everFreed++
}

// touch remembers to look whether p must be told something.
func (m *Machine) touch(p *peer) {
	if !p.acks.stale {
		p.acks.stale = true
		m.touched = append(m.touched, p)
	}
}
