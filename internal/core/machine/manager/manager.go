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

	lead    leadership     // authority to act
	state   committedState // the committed table
	pending pendingCommit  // the next batch
	freed   freedLeases    // ended leases that the table does not record as ended yet

	members membership // the sessions, and the owner names
	outage  outage     // whether no owner is in contact
	history history    // whether the store has lost changes
	deaths  deaths     // sessions that were proven dead
	// census is the census that this machine continues; nil if there was none, and after the first step.
	census *Census

	plan       assignment // the desired assignment
	moves      moveSet    // moves in progress
	compaction compaction // merging of adjacent leases
	// touched are peers that may need a message.
	touched []*peer
}

// New returns the machine of a leader that took over before now, in term, and may act until authority. The state
// must have been read after the takeover. Advance it at once.
//
// Every lease in the table counts as held until every renewal by an earlier leader has expired.
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

// begin starts every step. The first step takes over: deadlines of owners start here, when the machine can receive
// requests.
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

// inherit creates a peer for every session in the table, and uses the table as the current assignment.
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
		p.verifyBy(e.Holder)
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
		m.outage.lastContact, m.outage.returnedAt = now, now // the census has received requests
		m.resumeHandovers(now)
	}
}

// resumeHandovers continues moves that owners completed while there was no leader.
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

// reconfigure replaces the configuration of the namespace. No deadline becomes earlier, because its lease time was
// already promised. If leases become longer, deadlines become later: the next message promises the longer time from
// a request that was accepted before.
func (m *Machine) reconfigure(now mono.Instant, cfg Config) {
	cfg.Namespace, cfg.Self, cfg.Rand = m.cfg.Namespace, m.cfg.Self, m.cfg.Rand
	cfg.Takeover = m.cfg.Takeover
	if err := cfg.validate(); err != nil {
		panic(err) // configurations are validated before they are stored
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

// Empty reports whether no owner holds a lease, and the store has recorded that.
func (m *Machine) Empty() bool {
	return m.lead.phase != takingOver && len(m.members.sessions) == 0 && len(m.freed.queue) == 0 && m.pending.stage == commitIdle
}

// Frozen returns an immutable copy of the committed table.
func (m *Machine) Frozen() *table.Table { return m.state.frozen() }

// Members returns the number of members that have sent a request in this term.
func (m *Machine) Members() int {
	n := 0
	for _, s := range m.members.seats {
		if s.incumbent.member() && s.incumbent.acks.echo != 0 {
			n++
		}
	}
	return n
}

// Seq returns the sequence number of the newest message to any owner.
func (m *Machine) Seq() protocol.Seq { return m.lead.seq }

// Term returns the leader's term.
func (m *Machine) Term() leasehold.Term { return m.lead.term }

// Table returns the committed table, which must not be changed. It is valid
// until the next call.
func (m *Machine) Table() *table.Table { return m.state.table }

// Sizes are the sizes of everything in a machine that can grow.
type Sizes struct {
	Sessions  int // all sessions
	Inherited int // found in the table at takeover
	Heard     int // have sent a request in this term
	Seats     int
	Ranges    int // of the table
	Planned   int // of the desired assignment
	Reasons   int // ranges with different reasons
	Log       int // changes kept for lookups
	Freed     int // leases that have ended, not recorded yet
	Moves     int // in progress
	Backlog   int // moves that have not started
	Deaths    int // proven, and notices without a reply
	Actions   int // capacity
}

// Sizes returns the current sizes.
func (m *Machine) Sizes() Sizes {
	return Sizes{
		Sessions: len(m.members.sessions), Inherited: m.members.inherited, Heard: m.members.connected, Seats: len(m.members.seats),
		Ranges: m.state.table.Len(), Planned: m.plan.desired.Len(), Reasons: m.plan.reasons.Len(), Log: m.state.log.Len(), Freed: len(m.freed.queue),
		Moves: len(m.moves.all), Backlog: m.members.backlog(),
		Deaths: len(m.deaths.proven) + len(m.deaths.waiting), Actions: cap(m.out),
	}
}

// Step handles an event that happened at now, and the passage of time. It returns the actions, in order, and when
// to call Advance at the latest.
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
	case Floor:
		m.raiseFloor(e.Number)
	case Reconfigured:
		m.reconfigure(now, e.Config)
	case Order:
		m.order(now, e)
	case Died:
		m.died(now, e)
	}
	return m.finish(now)
}

// Advance handles the passage of time.
func (m *Machine) Advance(now mono.Instant) ([]Action, mono.Instant) {
	if m.lead.phase == deposed {
		return nil, mono.Never
	}
	m.begin(now)
	return m.finish(now)
}

// emptied returns an empty slice for reuse, with its elements cleared. A large slice, from a rare event, is freed
// instead.
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
		return m.out, m.pending.rereadAt // nothing else to do without authority
	}
	m.planBatch(now)
	m.detectIdle(now)
	m.sendTouched(now)
	m.sendGoodbyes(now)
	m.sendDeathReplies()
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

// expire handles all deadlines that have passed. A leader without authority must not expire owners: they may have
// sent requests to its successor.
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
		return // the end of that triggers the rest
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

// resendDue sends the message that a race has delayed, and schedules the next wake-up for the peer.
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

// remove ends a session and all its leases. The session that waits for its owner name gets it.
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
	m.plan.succeeded(s)
	// Leases granted from now on count from its last request.
	s.incumbent.renewal.until = max(s.incumbent.renewal.until, s.incumbent.renewal.lastRequest.Add(m.patience(s.incumbent)))
	if s.incumbent.acks.proven {
		m.plan.replan, m.plan.occasion = true, table.Joined
		m.touch(s.incumbent)
	}
}

// touch adds p to the peers that may need a message.
func (m *Machine) touch(p *peer) {
	if !p.acks.stale {
		p.acks.stale = true
		m.touched = append(m.touched, p)
	}
}
