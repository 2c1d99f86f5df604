package flease

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// Time is a reading of both clocks of a process.
type Time struct {
	Mono mono.Instant
	Wall Wall
}

// reached reports whether one of t's clocks has reached its part of end.
func (t Time) reached(end Time) bool { return t.Mono >= end.Mono || t.Wall > end.Wall }

// passed reports whether both have.
func (t Time) passed(end Time) bool { return t.Mono >= end.Mono && t.Wall > end.Wall }

// A Machine is one process's part in all leases: acceptor for the groups that it is a member of,
// and proposer for its own bids. It is not safe for concurrent use.
type Machine struct {
	cfg       Config
	admission admission
	identity  identity
	acceptor  acceptor
	proposer  proposer
	clock     clock

	peers map[Process]*peer
	order []*peer // sorted: iteration order must be deterministic

	notices   []Notice
	delivered []Notice
	counts    Counters
}

// An acceptor has the known resources, and upper bounds for dropped ones.
type acceptor struct {
	cells  cells
	groups map[string]*group
	// manyGroups is the number of groups at which those without resources are dropped.
	manyGroups int
	floor      Ballot // at least as high as any promise of a dropped cell
	fence      uint64 // at least as high as any fence of a dropped cell
}

// A proposer has the bids for leases.
type proposer struct {
	bids   []*bid
	spare  []*bid // ended, for reuse
	alarms alarms
	rtt    time.Duration // round-trip time, smoothed
	top    Ballot        // highest known
	serial uint64        // of our last written value
}

// Counters count messages that were ignored.
type Counters struct {
	Foreign uint64 // from an unknown process, or about an unknown resource
	Void    uint64 // for or from an earlier incarnation
	BadTime uint64 // from a process with a wrong clock
	Full    uint64 // the limit of resources was reached
}

// A peer is another process.
type peer struct {
	id           Process
	incarnation  uint64    // 0 if unknown
	since        Wall      // our clock when this incarnation was established
	lives        lives     // recent incarnations of the peer
	stranger     uint64    // another incarnation that must prove that it is alive; 0 if none
	strangerSent Wall      // that incarnation's clock in its last envelope
	echo         Wall      // its clock in the last envelope of the peer
	off          bool      // its clock is wrong
	greet        bool      // send a greeting with our incarnation
	query        bool      // send a query that requires a reply
	out          []Message // messages to be sent
}

// New returns a machine without state. It is silent until all state that an earlier process may
// have had is irrelevant.
func New(now Time, cfg Config) (*Machine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	m := &Machine{
		cfg: cfg, peers: make(map[Process]*peer),
		acceptor: acceptor{cells: newCells(), groups: make(map[string]*group), manyGroups: maxGroups},
		proposer: proposer{rtt: cfg.Resend / 4},
		clock:    clock{looked: now, steady: now.Wall},
	}
	m.recover(now)
	for _, id := range slices.Sorted(slices.Values(cfg.Peers)) {
		if id != cfg.Self {
			p := &peer{id: id}
			m.peers[id] = p
			m.order = append(m.order, p)
		}
	}
	if cfg.Group == nil {
		if err := checkMembers("the group of all members", cfg.Peers, true); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// recover starts the recovery time, in which the machine is silent.
func (m *Machine) recover(now Time) {
	monotonic, wall := m.cfg.recovery()
	m.admission.at = Time{now.Mono.Add(monotonic), now.Wall.Add(wall)}
}

// Ready reports whether the machine participates. After a start it does not for the recovery time.
func (m *Machine) Ready() bool { return m.admission.ready() }

// Retired reports whether the machine has given way to its twin. It never participates again.
func (m *Machine) Retired() bool { return m.admission.stage == retired }

// Counters returns the counts of ignored messages.
func (m *Machine) Counters() Counters { return m.counts }

// Size returns the number of known resources.
func (m *Machine) Size() int { return m.acceptor.cells.n }

// Observe checks the clocks. All other calls do so too, but the caller may need the resulting
// notices before a new request.
func (m *Machine) Observe(now Time) { m.observe(now) }

// observe is called first with every new time.
func (m *Machine) observe(now Time) {
	m.watchClock(now)
	if m.admission.stage == silent && now.passed(m.admission.at) {
		m.admission.stage, m.admission.since = participating, now.Mono
		m.notice(Notice{What: Ready})
	}
}

// Advance handles the passing of time.
func (m *Machine) Advance(now Time) {
	m.observe(now)
	for m.proposer.alarms.next() <= now.Mono {
		a := m.proposer.alarms.pop()
		b := a.bid
		if b.queued != a.at {
			continue
		}
		b.queued = mono.Never
		if b.at <= now.Mono {
			m.handleTimer(now, b)
		} else {
			m.queue(b)
		}
	}
	for m.nextEviction() <= now.Mono {
		m.evict(now, m.acceptor.cells.oldest)
	}
}

// Wake returns the latest time for the next Advance.
func (m *Machine) Wake(now Time) mono.Instant {
	at := min(m.proposer.alarms.next(), m.nextEviction())
	if m.admission.stage != silent {
		return at
	}
	return min(at, m.admission.joins(now))
}

// Receive handles the messages of an envelope, and copies what it keeps of them. If reply is true,
// the answer must be sent along the return path of the envelope: the sender may have another
// address than the one that its id is configured with.
func (m *Machine) Receive(now Time, e *Envelope, msgs []Message) (answer Envelope, reply bool) {
	m.observe(now)
	p := m.peers[e.From]
	switch {
	case m.admission.stage == retired:
		return answer, false
	case p == nil && e.From != m.cfg.Self || e.Incarnation == 0:
		m.counts.Foreign++
		return answer, false
	case e.GiveWay && e.To == m.cfg.Incarnation:
		m.retire(now)
		return answer, false
	case p == nil:
		return m.handleTwin(now, e)
	}
	answer, reply, welcome := m.checkTwins(now, p, e)
	if welcome {
		m.handlePeer(now, p, e, msgs)
	} else {
		m.counts.Void++
	}
	return answer, reply
}

// handlePeer handles an envelope of a peer without a known twin.
func (m *Machine) handlePeer(now Time, p *peer, e *Envelope, msgs []Message) {
	switch {
	case !m.admission.ready():
		m.recordEncounter(now, e, false)
		return
	case !m.updateIncarnation(now, p, e):
		m.counts.Void++
		return
	case !m.compareClocks(now, p, e):
		m.counts.BadTime++
		p.greet = p.greet || len(msgs) > 0 // so that it can detect its error
		return
	case e.To != m.cfg.Incarnation:
		m.counts.Void++
		p.greet = true
		return
	case e.Waiting:
		p.greet = true // so that it learns that we participate
		return
	}
	for len(msgs) > 0 {
		few := msgs[:min(len(msgs), Ahead)]
		msgs = msgs[len(few):]
		for i := range few {
			if few[i].Kind == KindRead || few[i].Kind == KindInsist {
				m.acceptor.cells.warm(few[i].Name)
			}
		}
		for i := range few {
			m.handleMessage(now, p, &few[i])
		}
	}
}

// updateIncarnation updates a peer's incarnation. It returns false for an incarnation that may be dead: a late
// message of an earlier one must not replace the present one. A new incarnation is greeted, and
// accepted when it echoes an envelope that we sent after we accepted the last one. A waiting one is
// not accepted, since it may have to give way.
func (m *Machine) updateIncarnation(now Time, p *peer, e *Envelope) bool {
	switch {
	case e.Incarnation == p.incarnation:
		return true
	case p.incarnation != 0 && (e.Waiting || e.To != m.cfg.Incarnation || e.Echo <= p.since):
		p.stranger, p.strangerSent = e.Incarnation, e.Sent
		return false
	}
	p.incarnation, p.since, p.echo, p.off = e.Incarnation, now.Wall, 0, false
	p.out = p.out[:0] // for the earlier incarnation
	for _, b := range slices.Clone(m.proposer.bids) {
		m.memberRestarted(now, b, p)
	}
	return true
}

func (m *Machine) handleMessage(now Time, p *peer, msg *Message) {
	switch msg.Kind {
	case KindRead, KindInsist:
		if c := m.acceptorOf(now, p, msg); c != nil {
			p.out = append(p.out, m.read(now, c, msg, p.incarnation))
		}
	case KindWrite:
		c := m.acceptor.cells.at(msg.To)
		if c == nil {
			p.out = append(p.out, m.unpromised(msg))
			return
		}
		if answer, ok := m.store(now, c, msg, p.incarnation); ok {
			p.out = append(p.out, answer)
		}
	case KindPromise, KindAccept, KindReject, KindHeld:
		c := m.acceptor.cells.at(msg.To)
		if c == nil || c.bid == nil || c.bid.round.ballot != msg.Ballot {
			return // stale
		}
		if i := c.group.index(p.id); i >= 0 {
			m.answer(now, c.bid, i, msg)
		}
	default:
		m.counts.Foreign++
	}
}

// Flush sends the pending messages of all peers. A message to our own id goes to the process at
// that address.
func (m *Machine) Flush(now Time, send func(to Process, e *Envelope, msgs []Message)) {
	for _, p := range m.order {
		e := Envelope{From: m.cfg.Self, Incarnation: m.cfg.Incarnation, Waiting: !m.admission.ready(), To: p.incarnation, Sent: now.Wall, Echo: p.echo}
		if p.stranger != 0 {
			greeting := e
			greeting.To, greeting.Echo, p.stranger = p.stranger, p.strangerSent, 0 // it may need proof that we are alive, too
			m.emit(&greeting, nil, p.id, send)
		}
		if p.query {
			query := e
			query.To, p.query = 0, false // is answered by any participating process
			m.emit(&query, nil, p.id, send)
		}
		if len(p.out) == 0 && !p.greet {
			continue
		}
		if last := &p.lives.recent[0]; !m.admission.ready() && last.incarnation != 0 {
			e.To, e.Echo = last.incarnation, last.sent // while we wait, no incarnation is established: echo proves that we are alive
		}
		m.emit(&e, p.out, p.id, send)
		p.out, p.greet = p.out[:0], false
	}
	if m.identity.greetSelf {
		m.identity.greetSelf = false
		e := m.answerTo(now, &Envelope{Incarnation: m.identity.twin.incarnation, Sent: m.identity.twin.sent})
		e.GiveWay = m.stays()
		send(m.cfg.Self, &e, nil)
	}
}

func (m *Machine) emit(e *Envelope, msgs []Message, to Process, send func(to Process, e *Envelope, msgs []Message)) {
	m.identity.lastSent = max(m.identity.lastSent, e.Sent)
	send(to, e, msgs)
}

// Acquire bids for a lease until it is released or lost.
func (m *Machine) Acquire(now Time, name string) error {
	_, err := m.Bid(now, name, false, nil)
	return err
}

// Try bids for a lease that is available now.
func (m *Machine) Try(now Time, name string) error {
	_, err := m.Bid(now, name, true, nil)
	return err
}

// Tag returns the shell's tag of the present bid for a resource; nil if there is none.
func (m *Machine) Tag(name string) any {
	if c, _ := m.acceptor.cells.find(name); c != nil && c.bid != nil {
		return c.bid.tag
	}
	return nil
}

// Expect prefetches the index entries of names that Tag and Bid will be called with next. It
// changes no state, but saves most of the cost of the lookups. A few dozen names per call are best.
func (m *Machine) Expect(names []string) {
	for _, name := range names {
		m.acceptor.cells.warm(name)
	}
}

// A Stake identifies a bid for the shell.
type Stake struct {
	Ref   Ref
	Peers int // number of other members that are queried
}

// Bid is Acquire or Try. The notices of the bid contain the tag, so that the shell needs no lookup
// by name.
func (m *Machine) Bid(now Time, name string, try bool, tag any) (Stake, error) {
	m.observe(now)
	if m.admission.stage == retired {
		return Stake{}, leasehold.Errorf(op, leasehold.ErrNameTaken, name, "another process runs as member %d, and this one has given way: stop one of them, and restart this one", m.cfg.Self)
	}
	c, err := m.cell(now, name, m.cfg.Self)
	if err != nil {
		return Stake{}, err
	}
	w := wishHold
	if try {
		w = wishTry
	}
	stake := Stake{c.ref, len(c.group.members) - 1}
	b := c.bid
	if b == nil {
		b = m.proposer.newBid(c)
		b.wish, b.tag = w, tag
		m.begin(now, b)
		return stake, nil
	}
	// The replies in a round that was begun for a release are older than this request: its result
	// must not be based on them.
	stale := b.wish == wishNone && b.phase == reading
	b.wish, b.tag = max(b.wish, w), tag
	if try && (b.phase == waiting || stale) {
		m.begin(now, b)
	}
	return stake, nil
}
