package flease

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// Time is what both clocks of a process show at a moment.
type Time struct {
	Mono mono.Instant
	Wall Wall
}

// reached reports whether one of t's clocks has reached its part of end.
func (t Time) reached(end Time) bool { return t.Mono >= end.Mono || t.Wall > end.Wall }

// passed reports whether both have.
func (t Time) passed(end Time) bool { return t.Mono >= end.Mono && t.Wall > end.Wall }

// A Machine is one process's part in all leases: acceptor for the groups that it
// is a member of, and proposer for what it wants. It is not safe for concurrent
// use.
type Machine struct {
	cfg       Config
	admission admission
	identity  identity
	acceptor  acceptor
	proposer  proposer
	clock     clock

	peers map[Process]*peer
	order []*peer // sorted: what is done for all is done in this order

	notices []Notice
	told    []Notice
	counts  Counters
}

// An acceptor is what is known of resources, and at least as high as what was forgotten.
type acceptor struct {
	cells  cells
	groups map[string]*group
	// Groups of which nothing is known are dropped when there are so many.
	manyGroups int
	floor      Ballot // at least as high as any promise that was forgotten
	fence      uint64 // at least as high as any fence that was forgotten
}

// A proposer is the bids for leases.
type proposer struct {
	bids   []*bid
	spare  []*bid // that have ended
	alarms alarms
	trip   time.Duration // how long it takes to be answered, smoothed
	top    Ballot        // the highest that we know of
	serial uint64        // of the last value that we wrote
}

// Counters count what was received and is of no use.
type Counters struct {
	Foreign uint64 // from a process, or about a resource, that we know nothing of
	Void    uint64 // meant for an earlier incarnation, or from one
	BadTime uint64 // from a process whose clock is off
	Full    uint64 // there was no room for the resource
}

// A peer is another process.
type peer struct {
	id          Process
	incarnation uint64    // 0 if we have never heard it
	since       Wall      // our clock when we began to take it for that one
	lives       lives     // who has spoken for it, and may live
	stranger    uint64    // another one that has spoken, and must prove that it lives; 0 if none
	spoke       Wall      // its clock when it did
	echo        Wall      // its clock when it sent what came last
	off         bool      // its clock differs from ours by more than it may
	greet       bool      // it must learn our incarnation
	ask         bool      // it is to answer
	out         []Message // still to be sent
}

// New returns a machine that knows nothing and is silent until what it may have
// known before is of no importance any more.
func New(now Time, cfg Config) (*Machine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	m := &Machine{
		cfg: cfg, peers: make(map[Process]*peer),
		acceptor: acceptor{cells: newCells(), groups: make(map[string]*group), manyGroups: maxGroups},
		proposer: proposer{trip: cfg.Resend / 4},
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

// recover begins the time in which the machine is silent.
func (m *Machine) recover(now Time) {
	monotonic, wall := m.cfg.recovery()
	m.admission.at = Time{now.Mono.Add(monotonic), now.Wall.Add(wall)}
}

// Ready reports whether the machine takes part. It does not for a while after it
// was started.
func (m *Machine) Ready() bool { return m.admission.ready() }

// Retired reports whether the machine has given way to another process with its id.
// It never takes part again.
func (m *Machine) Retired() bool { return m.admission.stage == retired }

// Counters returns what was of no use so far.
func (m *Machine) Counters() Counters { return m.counts }

// Size returns how many resources are known.
func (m *Machine) Size() int { return m.acceptor.cells.n }

// Observe looks at the clocks. Every other call does so, too; but what comes of that
// is better known before something new is asked for.
func (m *Machine) Observe(now Time) { m.observe(now) }

// observe is called first with every new time.
func (m *Machine) observe(now Time) {
	m.watchClock(now)
	if m.admission.stage == silent && now.passed(m.admission.at) {
		m.admission.stage, m.admission.since = takingPart, now.Mono
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
			m.fire(now, b)
		} else {
			m.queue(b)
		}
	}
	for m.visits() <= now.Mono {
		m.visit(now, m.acceptor.cells.oldest)
	}
}

// Wake returns when Advance must be called at the latest.
func (m *Machine) Wake(now Time) mono.Instant {
	at := min(m.proposer.alarms.next(), m.visits())
	if m.admission.stage != silent {
		return at
	}
	return min(at, m.admission.joins(now))
}

// Receive handles the messages of an envelope. What it keeps of them it copies. If
// reply is true, the answer is to go the way that the envelope came: the sender may
// be elsewhere than where its id is looked for.
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
		return m.meetTwin(now, e)
	}
	answer, reply, welcome := m.census(now, p, e)
	if welcome {
		m.hear(now, p, e, msgs)
	} else {
		m.counts.Void++
	}
	return answer, reply
}

// hear handles what comes from a peer that has no twin, as far as we know.
func (m *Machine) hear(now Time, p *peer, e *Envelope, msgs []Message) {
	switch {
	case !m.admission.ready():
		m.saw(now, e, false)
		return
	case !m.meet(now, p, e):
		m.counts.Void++
		return
	case !m.compareClocks(now, p, e):
		m.counts.BadTime++
		p.greet = p.greet || len(msgs) > 0 // that it may find out
		return
	case e.To != m.cfg.Incarnation:
		m.counts.Void++
		p.greet = true
		return
	case e.Waiting:
		p.greet = true // it must know that we take part
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
			m.take(now, p, &few[i])
		}
	}
}

// meet learns a peer's incarnation. It reports false for one that may be over:
// what comes late from an earlier one must not make us forget the present one. So
// another is greeted, and believed when it echoes something that we have said
// since we met the last. One that waits has no use for it yet, and may have to give
// way.
func (m *Machine) meet(now Time, p *peer, e *Envelope) bool {
	switch {
	case e.Incarnation == p.incarnation:
		return true
	case p.incarnation != 0 && (e.Waiting || e.To != m.cfg.Incarnation || e.Echo <= p.since):
		p.stranger, p.spoke = e.Incarnation, e.Sent
		return false
	}
	p.incarnation, p.since, p.echo, p.off = e.Incarnation, now.Wall, 0, false
	p.out = p.out[:0] // it was meant for the one before
	for _, b := range slices.Clone(m.proposer.bids) {
		m.forgot(now, b, p)
	}
	return true
}

func (m *Machine) take(now Time, p *peer, msg *Message) {
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
			return // an answer to what is over
		}
		if i := c.group.index(p.id); i >= 0 {
			m.answer(now, c.bid, i, msg)
		}
	default:
		m.counts.Foreign++
	}
}

// Flush hands over what is to be sent, peer by peer. What is for our own id is for
// whoever is at its address.
func (m *Machine) Flush(now Time, send func(to Process, e *Envelope, msgs []Message)) {
	for _, p := range m.order {
		e := Envelope{From: m.cfg.Self, Incarnation: m.cfg.Incarnation, Waiting: !m.admission.ready(), To: p.incarnation, Sent: now.Wall, Echo: p.echo}
		if p.stranger != 0 {
			greeting := e
			greeting.To, greeting.Echo, p.stranger = p.stranger, p.spoke, 0 // it may have to believe us, too
			m.emit(&greeting, nil, p.id, send)
		}
		if p.ask {
			question := e
			question.To, p.ask = 0, false // which is answered by whoever takes part
			m.emit(&question, nil, p.id, send)
		}
		if len(p.out) == 0 && !p.greet {
			continue
		}
		if last := &p.lives.heard[0]; !m.admission.ready() && last.incarnation != 0 {
			e.To, e.Echo = last.incarnation, last.sent // we have met nobody, and live
		}
		m.emit(&e, p.out, p.id, send)
		p.out, p.greet = p.out[:0], false
	}
	if m.identity.hail {
		m.identity.hail = false
		e := m.answerTo(now, &Envelope{Incarnation: m.identity.twin.incarnation, Sent: m.identity.twin.sent})
		e.GiveWay = m.stays()
		send(m.cfg.Self, &e, nil)
	}
}

func (m *Machine) emit(e *Envelope, msgs []Message, to Process, send func(to Process, e *Envelope, msgs []Message)) {
	m.identity.said = max(m.identity.said, e.Sent)
	send(to, e, msgs)
}

// Acquire wants a lease until it is released, or lost.
func (m *Machine) Acquire(now Time, name string) error {
	_, err := m.Bid(now, name, false, nil)
	return err
}

// Try wants a lease if it is to be had now.
func (m *Machine) Try(now Time, name string) error {
	_, err := m.Bid(now, name, true, nil)
	return err
}

// Tag returns what the shell has tagged the present bid for a resource with; nil
// if there is none.
func (m *Machine) Tag(name string) any {
	if c, _ := m.acceptor.cells.find(name); c != nil && c.bid != nil {
		return c.bid.tag
	}
	return nil
}

// Expect hears of names that Tag and Bid will be called with next. It changes
// nothing, but saves them most of the time that it takes to find resources. A few
// dozen at a time are best.
func (m *Machine) Expect(names []string) {
	for _, name := range names {
		m.acceptor.cells.warm(name)
	}
}

// A Stake is a bid, as the shell knows it.
type Stake struct {
	Ref   Ref
	Peers int // how many others are asked
}

// Bid is Acquire or Try. What there is to say about the bid comes with the tag: then
// the shell need not look for what it knows about the resource.
func (m *Machine) Bid(now Time, name string, try bool, tag any) (Stake, error) {
	m.observe(now)
	if m.admission.stage == retired {
		return Stake{}, leasehold.Errorf(op, leasehold.ErrNameTaken, name, "another process runs as member %d, and this one has given way: stop one of them, and start this one anew", m.cfg.Self)
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
	// What was heard in a round that was begun for a release is older than the
	// question: an answer must not rest on it.
	stale := b.wish == wishNone && b.phase == reading
	b.wish, b.tag = max(b.wish, w), tag
	if try && (b.phase == waiting || stale) {
		m.begin(now, b)
	}
	return stake, nil
}
