package manager

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/changelog"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// A Machine leads one namespace for one term. It is not safe for concurrent
// use. The actions that Step and Advance return are valid until the next call.
type Machine struct {
	cfg  Config
	out  []Action
	wake mono.Instant // no deadline is earlier

	lead    leadership     // for how long we may act
	state   committedState // what the store has
	pending pendingCommit  // what it is to have next
	freed   freedLeases    // leases that have ended, which the table does not say yet

	members membership // the sessions, and the owners' names
	outage  outage     // whether no owner is heard
	history history    // whether the store has lost changes
	// census is where we come from, if we have asked the owners what there is; nil
	// if we have not, and once it was made use of.
	census *Census

	plan       assignment // who is to have what
	moves      moveSet    // state on its way
	compaction compaction // joining leases that lie side by side
	// touched are peers that may have to be sent something.
	touched []*peer
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
		cfg: cfg, wake: mono.Never,
		lead:    leadership{term: term, authority: authority, seq: cfg.Takeover.FirstSeq},
		state:   committedState{table: t, unsaved: len(state.Changes)},
		pending: pendingCommit{rereadAt: mono.Never},
		members: membership{sessions: make(map[leasehold.Session]*peer)},
		plan: assignment{
			desired: keyrange.NewMap[*seat](nil), reasons: keyrange.NewMap(table.NoReason), replan: true, rescanAt: mono.Never,
		},
	}
	m.history.found, m.history.since = ending{t.LSN(), m.newest()}, now
	m.assessHistory(state.Unfinished)
	m.state.log = changelog.New(t.LSN()-leasehold.LSN(len(state.Changes)), cfg.Log.Changes, cfg.Log.Age)
	m.state.log.Append(now, state.Changes)
	return m, nil
}

// begin starts every step. The first one takes over: from here on we judge who
// is alive, so that nobody's time starts before we can listen.
func (m *Machine) begin(now mono.Instant) {
	m.out = emptied(m.out)
	if m.lead.phase == takingOver {
		m.lead.phase = leading
		m.plan.churn.begin(now)
		m.inherit(now)
		m.redraw(now)
	}
	m.expire(now)
}

// inherit makes a peer of every session that the table names, and takes the
// table for the assignment in force.
func (m *Machine) inherit(now mono.Instant) {
	until := now.Add(max(m.cfg.Timing.Hold(), m.cfg.Promised))
	m.members.inheritUntil, m.history.decideAt = until, until
	m.wakeAt(until)
	for r, e := range m.state.table.All() {
		if e.Vacant() {
			continue
		}
		p := m.members.sessions[e.Holder.Session]
		if p == nil {
			p = newInheritedPeer(e.Holder, until)
			if m.census != nil {
				p.renewal.until = m.census.until(e.Holder.Session)
				m.wakeAt(p.renewal.until)
			}
			m.members.sessions[e.Holder.Session] = p
			m.members.inherited++
		}
		p.held.leases = append(p.held.leases, leasehold.Lease{Range: r, Generation: e.Generation})
	}
	for r, e := range m.state.table.All() {
		if e.Vacant() {
			m.plan.current = m.plan.current.Append(r.Start, "")
			continue
		}
		m.plan.current = m.plan.current.Append(r.Start, e.Holder.Owner)
		if m.members.sessions[e.Holder.Session].seat != nil {
			continue
		}
		p := m.members.sessions[e.Holder.Session]
		s := m.members.seat(e.Holder.Owner)
		if s.incumbent != nil {
			m.emit(Note{What: NoteGhost, Owner: s.owner})
			if newestOf(s.incumbent) > newestOf(p) {
				continue
			}
			s.incumbent.seat = nil
		}
		s.incumbent, p.seat = p, s
	}
	m.members.named = m.members.inherited
	if m.census != nil {
		m.outage.lastContact, m.outage.returnedAt = now, now // the census has heard owners
		m.resumeHandovers(now)
	}
}

// resumeHandovers goes on with what owners have handed over while nobody led.
func (m *Machine) resumeHandovers(now mono.Instant) {
	for _, h := range m.census.handovers() {
		if p := m.members.sessions[h.from.Session]; p != nil {
			m.releaseHandedOver(now, p, []protocol.MoveReport{h.MoveReport}, leasehold.CauseReleased)
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
	cfg.Takeover = m.cfg.Takeover
	if err := cfg.validate(); err != nil {
		panic(err) // whoever stores a configuration has it checked
	}
	longer := cfg.Timing.Hold() > m.cfg.Timing.Hold()
	m.cfg = cfg
	if longer {
		for _, p := range m.members.sessions {
			p.renewal.until = max(p.renewal.until, now.Add(m.patience(p)))
			if p.renewal.due != 0 {
				p.renewal.due = p.renewal.until // a message that is sent now promises the longer time, too
			}
		}
	}
	m.state.log.Limit(now, cfg.Log.Changes, cfg.Log.Age)
	m.plan.replan, m.plan.occasion = true, table.Configured
	m.wake = now
}

// Empty reports whether nobody holds anything, and the store knows it.
func (m *Machine) Empty() bool {
	return m.lead.phase != takingOver && len(m.members.sessions) == 0 && len(m.freed.queue) == 0 && m.pending.stage == commitIdle
}

// Frozen returns the committed table as a value that stays as it is.
func (m *Machine) Frozen() *table.Table { return m.state.frozen() }

// Members returns how many owners take part.
func (m *Machine) Members() int {
	n := 0
	for _, s := range m.members.seats {
		if s.incumbent.member() && s.incumbent.acks.echo != 0 {
			n++
		}
	}
	return n
}

// Seq returns the number of our newest message to anyone.
func (m *Machine) Seq() protocol.Seq { return m.lead.seq }

// Term returns the leader's term.
func (m *Machine) Term() leasehold.Term { return m.lead.term }

// Table returns the committed table, which must not be changed. It is valid
// until the next call.
func (m *Machine) Table() *table.Table { return m.state.table }

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
		Sessions: len(m.members.sessions), Inherited: m.members.inherited, Heard: m.members.connected, Seats: len(m.members.seats),
		Ranges: m.state.table.Len(), Planned: m.plan.desired.Len(), Reasons: m.plan.reasons.Len(), Log: m.state.log.Len(), Freed: len(m.freed.queue),
		Moves: len(m.moves.all), Backlog: m.members.backlog(), Actions: cap(m.out),
	}
}

// Step handles an event that happened at now, and all time that has passed.
// It returns what to do, in order, and when to call Advance at the latest.
func (m *Machine) Step(now mono.Instant, e Event) ([]Action, mono.Instant) {
	if m.lead.phase == deposed {
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
	if m.lead.phase == deposed {
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
	if m.lead.phase == deposed {
		return m.out, mono.Never
	}
	if now >= m.pending.rereadAt {
		m.pending.rereadAt = mono.Never
		m.emit(ReadEnd{})
	}
	if !m.lead.active(now) {
		return m.out, m.pending.rereadAt // nothing else to do until we lead again
	}
	m.planBatch(now)
	m.detectIdle(now)
	m.sendTouched(now)
	m.sendGoodbyes(now)
	return m.out, min(m.wake, m.pending.rereadAt)
}

func (m *Machine) emit(a Action) { m.out = append(m.out, a) }

// deposed ends the machine.
func (m *Machine) deposed(by leasehold.Term) {
	m.lead.phase = deposed
	m.emit(Deposed{by})
}

func (m *Machine) wakeAt(at mono.Instant) { m.wake = min(m.wake, at) }

func (m *Machine) backoff() time.Duration {
	return time.Duration(m.cfg.Rand.Int64N(int64(m.cfg.Backoff) + 1))
}

// expire ends what has run out of time. A leader without authority must not
// judge others: they may well have spoken to its successor.
func (m *Machine) expire(now mono.Instant) {
	if now < m.wake || !m.lead.active(now) {
		return
	}
	m.wake = mono.Never
	for _, s := range slices.Clone(m.members.seats) {
		if p := s.contender; p != nil && now >= p.renewal.until {
			m.remove(p, leasehold.CauseExpired)
		}
		if s.replaced(now) || m.history.forfeited(now, s.incumbent) {
			m.expireIncumbent(s)
		}
	}
	if !m.retainSilent(now) {
		m.expireSilent(now)
	}
	m.detectOutage(now)
	for _, s := range m.members.seats {
		for _, p := range []*peer{s.incumbent, s.contender} {
			m.resendDue(now, p)
		}
	}
	for _, p := range m.members.ghosts() {
		m.wakeAtDeadline(now, p)
	}
	m.overdueMoves(now)
	if m.pending.stage != commitIdle || m.history.doubted() {
		return // the end of that is the time for everything else
	}
	m.wakeAt(m.plan.rescanAt)
	m.wakeAt(m.plan.churn.next)
	if now < m.compaction.notBefore {
		m.wakeAt(m.compaction.notBefore)
	}
	if m.plan.replan {
		m.wakeAt(max(m.plan.replanAt, m.plan.gatherUntil))
	}
}

// resendDue sends what a race has delayed and sets the alarm for what is next.
func (m *Machine) resendDue(now mono.Instant, p *peer) {
	if p == nil {
		return
	}
	if now >= p.acks.resendAt {
		p.acks.resendAt = mono.Never
		m.sendLeases(now, p)
	}
	m.wakeAt(p.acks.resendAt)
	m.wakeAtDeadline(now, p)
}

// remove ends a peer and all its leases, and seats whoever waits for its name.
func (m *Machine) remove(p *peer, cause leasehold.Cause) {
	for _, l := range p.held.leases {
		m.freed.add(freed{Lease: l, holder: p.holder, cause: cause})
	}
	p.held.setLeases(nil)
	m.endMoves(p)
	m.confirmMoves(p, nil)
	wasMember := p.member()
	m.detach(p)
	if s := p.seat; s != nil && wasMember {
		m.plan.lostMember(table.Gone)
	}
}

// detach removes a peer that has no leases.
func (m *Machine) detach(p *peer) {
	delete(m.members.sessions, p.holder.Session)
	if p.acks.echo != 0 {
		m.members.connected--
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
		i, _ := m.members.findSeat(s.owner)
		m.members.seats = slices.Delete(m.members.seats, i, i+1)
		return
	}
	m.emit(Note{What: NoteSuccessor, Owner: s.owner})
	// What it is given now counts from the request that it spoke last.
	s.incumbent.renewal.until = max(s.incumbent.renewal.until, s.incumbent.renewal.lastRequest.Add(m.patience(s.incumbent)))
	if s.incumbent.acks.proven {
		m.plan.replan, m.plan.occasion = true, table.Joined
		m.touch(s.incumbent)
	}
}

// touch remembers to look whether p must be told something.
func (m *Machine) touch(p *peer) {
	if !p.acks.stale {
		p.acks.stale = true
		m.touched = append(m.touched, p)
	}
}
