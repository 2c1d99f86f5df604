package flease

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math/bits"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// A group is the members of some resources.
type group struct {
	members  []Process
	peers    []*peer // of each member; nil for ourselves
	majority int
	self     int // our place; -1 if we are no member
	cells    int // how many resources of it are known
}

// index returns the place of a member, -1 if it is none.
func (g *group) index(p Process) int { return slices.Index(g.members, p) }

// A cell is what we know about one resource.
type cell struct {
	name  string
	hash  uint32 // of the name
	ref   Ref
	group *group // nil if the cell is not in use

	// What an acceptor knows.
	promised Ballot
	promisee uint64 // the incarnation that it was promised to
	written  Ballot
	value    Value
	deadline mono.Instant // until then the owner may believe in it, on our clock
	fence    uint64       // the highest that was seen

	bid     *bid // what we want with it; nil if nothing
	watched bool
	since   mono.Instant // when it began to be

	touched      mono.Instant // when it was last promised or written, or a little before
	older, newer *cell        // in the order of touched
}

// cell returns what is known about a resource, or begins to, on behalf of a process.
// Both that one and we must be members of its group.
func (m *Machine) cell(now Time, name string, by Process) (*cell, error) {
	c, hash := m.acceptor.cells.find(name)
	if c != nil {
		return c, c.group.check(name, by)
	}
	if name == "" || len(name) > MaxName {
		return nil, leasehold.Errorf(op, leasehold.ErrInvalid, name, "a name of %d bytes: want 1 to %d", len(name), MaxName)
	}
	if m.acceptor.cells.n >= m.cfg.Max {
		m.counts.Full++
		return nil, leasehold.Errorf(op, leasehold.ErrLimit, name, "%d resources are all that there is room for", m.cfg.Max)
	}
	g, err := m.groupOf(name)
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(g.check(name, m.cfg.Self), g.check(name, by)); err != nil {
		return nil, err
	}
	c = m.acceptor.cells.add(now.Mono, name, hash, g)
	g.cells++
	c.promised, c.fence = m.acceptor.floor, m.acceptor.fence
	return c, nil
}

// check says whether a process is a member.
func (g *group) check(name string, p Process) error {
	if g.index(p) < 0 {
		return leasehold.Errorf(op, leasehold.ErrInvalid, name, "member %d is not in its group %v", p, g.members)
	}
	return nil
}

// drop forgets a cell.
func (ac *acceptor) drop(c *cell) {
	c.group.cells--
	ac.cells.remove(c)
}

// maxGroups is how many groups are kept of which no resource is known, besides as
// many as there are others.
const maxGroups = 1024

// groupOf returns the group of a resource. Equal groups are one.
func (m *Machine) groupOf(name string) (*group, error) {
	members := m.cfg.Peers
	if m.cfg.Group != nil {
		members = m.cfg.Group(name)
	}
	var room [4 * 16]byte
	key := room[:0]
	for _, p := range members {
		key = binary.LittleEndian.AppendUint32(key, uint32(p))
	}
	if g := m.acceptor.groups[string(key)]; g != nil {
		return g, nil
	}
	if err := checkMembers("the group of "+name, members, true); err != nil {
		return nil, err
	}
	g := &group{members: slices.Clone(members), majority: len(members)/2 + 1}
	g.self = g.index(m.cfg.Self)
	for _, p := range members {
		if p != m.cfg.Self && m.peers[p] == nil {
			return nil, leasehold.Errorf(op, leasehold.ErrInvalid, name, "member %d of its group is not known: name it among the members", p)
		}
		g.peers = append(g.peers, m.peers[p])
	}
	if len(m.acceptor.groups) >= m.acceptor.manyGroups {
		maps.DeleteFunc(m.acceptor.groups, func(_ string, g *group) bool { return g.cells == 0 })
		m.acceptor.manyGroups = 2*len(m.acceptor.groups) + maxGroups
	}
	m.acceptor.groups[string(key)] = g
	return g, nil
}

// acceptorOf returns the cell that a read is about, nil if it is not for us.
func (m *Machine) acceptorOf(now Time, p *peer, msg *Message) *cell {
	c, err := m.cell(now, msg.Name, p.id)
	if err != nil {
		m.counts.Foreign++
		return nil
	}
	return c
}

// read promises a round, unless a later one was promised. A read that was sent
// again is answered again; but not to another process that uses the same ballot.
//
// A promise voids the round in which the owner of a lease renews it. So none is
// made to others while the lease is in force, unless they insist: those who ask
// time and again who has it would take it away.
func (m *Machine) read(now Time, c *cell, msg *Message, incarnation uint64) Message {
	if msg.Kind == KindRead && m.inForce(now, c) && (c.value.Owner != msg.Ballot.Process || c.value.Incarnation != incarnation) {
		return m.report(now, c, KindHeld, msg)
	}
	order := msg.Ballot.Compare(c.promised)
	if order < 0 || order == 0 && incarnation != c.promisee {
		return Message{Kind: KindReject, To: msg.From, Name: c.name, Ballot: msg.Ballot, Written: c.promised}
	}
	c.promised, c.promisee = msg.Ballot, incarnation
	m.acceptor.cells.touch(now.Mono, c, m.grain())
	m.proposer.top = later(m.proposer.top, msg.Ballot)
	return m.report(now, c, KindPromise, msg)
}

// report answers a read with what we know.
func (m *Machine) report(now Time, c *cell, kind Kind, msg *Message) Message {
	v := c.value
	v.Left = m.left(now, c)
	return Message{Kind: kind, To: msg.From, From: c.ref, Name: c.name, Ballot: msg.Ballot, Written: c.written, Value: v, Fence: c.fence}
}

// inForce reports whether, as far as we know, someone has the lease: neither
// clock says that it is over. That is less than what binds those who want it, so
// that one of our clocks that is wrong keeps nobody from asking.
func (m *Machine) inForce(now Time, c *cell) bool {
	v := &c.value
	return v.Owner != 0 && !v.Released && !now.reached(Time{c.deadline, v.Until.Add(m.cfg.Epsilon)})
}

// store stores a value in the round that was promised last, and in no other: a
// promise that we no longer know of, we do not keep. It answers nothing to what
// is older than what is stored in the same round.
func (m *Machine) store(now Time, c *cell, msg *Message, incarnation uint64) (Message, bool) {
	if msg.Value.Released && c.bid != nil && c.bid.phase == waiting {
		m.at(c.bid, now.Mono.Add(m.jitter(m.cfg.Backoff))) // we have heard it, even if we cannot store it
	}
	if msg.Ballot != c.promised || incarnation != c.promisee {
		return m.unpromised(msg), true
	}
	v := &msg.Value
	if v.Until.Sub(now.Wall) > m.cfg.Lease+2*m.cfg.Epsilon {
		m.counts.BadTime++ // we would wait for it for too long
		return Message{}, false
	}
	if c.written == msg.Ballot && v.Serial < c.value.Serial {
		return Message{}, false
	}
	deadline := now.Mono.Add(m.cfg.Drift.Stretch(v.Left))
	if v.same(&c.value) {
		deadline = min(deadline, c.deadline) // it was written for someone else: what we knew holds
	}
	changed := c.value.Owner != v.Owner || c.value.Fence != v.Fence || c.value.Released != v.Released
	c.written, c.value, c.deadline = msg.Ballot, *v, deadline
	if b := c.bid; b != nil && (b.awaited.Owner != v.Owner || b.awaited.Fence != v.Fence) {
		b.awaited = Value{} // what we were told is older
	}
	m.acceptor.cells.touch(now.Mono, c, m.grain())
	c.fence = max(c.fence, v.Fence)
	if changed {
		m.inform(now, c)
	}
	return Message{Kind: KindAccept, To: msg.From, Name: c.name, Ballot: msg.Ballot, Value: Value{Serial: v.Serial}}, true
}

// unpromised rejects a write in a round that was not promised, or has been
// forgotten. Which resource its sender means cannot be told, but a later ballot
// than all that we know of will do.
func (m *Machine) unpromised(msg *Message) Message {
	return Message{Kind: KindReject, To: msg.From, Ballot: msg.Ballot, Written: m.proposer.top}
}

// left is for how long the owner of a value may still believe in it, on the
// owner's clock: at least as much less than our deadline as that was stretched.
// So it may be handed on, from acceptor to acceptor, without growing.
func (m *Machine) left(now Time, c *cell) time.Duration {
	d := c.deadline.Sub(now.Mono)
	if d <= 0 {
		return 0
	}
	return time.Duration(float64(d)/float64(m.cfg.Drift)) + 1
}

// over reports whether nobody believes in a value any more, on either clock.
func (m *Machine) over(now Time, v *Value, left mono.Instant) bool {
	return now.passed(Time{left, v.Until.Add(m.cfg.Epsilon)})
}

// linger is how long a cell is kept that nobody asks for.
func (m *Machine) linger() time.Duration { return m.cfg.Drift.Stretch(m.cfg.Lease) + m.cfg.Epsilon }

// grain is how exactly it is known since when nobody has asked.
func (m *Machine) grain() time.Duration { return m.cfg.Lease / 16 }

// visits returns when the cell that was touched longest ago is to be visited.
func (m *Machine) visits() mono.Instant {
	if c := m.acceptor.cells.oldest; c != nil {
		return c.touched.Add(m.linger() + m.grain())
	}
	return mono.Never
}

// visit forgets a cell that is of no importance. Of what it promised, and of its
// fence, the machine keeps the highest.
func (m *Machine) visit(now Time, c *cell) {
	empty := c.value.Owner == 0 || c.value.Released || m.over(now, &c.value, c.deadline)
	if !empty || c.bid != nil || c.watched {
		m.acceptor.cells.touch(now.Mono, c, 0)
		return
	}
	m.acceptor.floor = later(m.acceptor.floor, c.promised)
	m.acceptor.fence = max(m.acceptor.fence, c.fence)
	m.acceptor.drop(c)
}

// Watch asks for notices when a resource seems to change hands, or for none.
func (m *Machine) Watch(now Time, name string, on bool) error {
	m.observe(now)
	c, err := m.cell(now, name, m.cfg.Self)
	if err != nil {
		return err
	}
	if on && !c.watched {
		c.since = now.Mono
	}
	c.watched = on
	return nil
}

// Look returns what we know about a resource, in a [Changed] notice. It is a hint:
// what we know as an acceptor may be old, or never have been agreed upon. That we
// have the lease ourselves it says only if we do.
func (m *Machine) Look(now Time, name string) Notice {
	if c, _ := m.acceptor.cells.find(name); c != nil {
		return m.seen(now, c)
	}
	return Notice{What: Changed, Name: name, Unsure: true}
}

func (m *Machine) seen(now Time, c *cell) Notice {
	n := Notice{What: Changed, Name: c.name, Fence: c.fence}
	if b := c.bid; b != nil && b.held && !now.reached(b.lease.Until) {
		n.Holder, n.Fence, n.Until = m.cfg.Self, b.lease.Fence, b.lease.Until.Wall
		return n
	}
	v, lasts := &c.value, m.lasts(now, &c.value, c.deadline)
	if b := c.bid; b != nil && b.phase == waiting && m.lasts(now, &b.awaited, b.awaits) {
		v, lasts = &b.awaited, true // others have told us since
	}
	switch {
	case lasts && v.Owner != m.cfg.Self:
		n.Holder, n.Fence, n.Until = v.Owner, v.Fence, v.Until
	case lasts && m.ours(v):
		n.Unsure = true // we want it, and others may be faster
	case v.Owner == 0:
		n.Unsure = !m.admission.ready() || now.Mono.Sub(max(m.admission.since, c.since)) < m.cfg.Lease // a holder would have renewed it
	}
	return n
}

// lasts reports whether somebody may believe in a value.
func (m *Machine) lasts(now Time, v *Value, deadline mono.Instant) bool {
	return v.Owner != 0 && !v.Released && !m.over(now, v, deadline)
}

// inform tells of who has a resource now, if it is watched.
func (m *Machine) inform(now Time, c *cell) {
	if c.watched {
		m.notice(m.seen(now, c))
	}
}

// Answers returns how many members have answered in the present round of our bid for
// a resource, and how many must. It reports false if we are not waiting for any, or
// have only begun to.
func (m *Machine) Answers(name string) (have, want int, waiting bool) {
	c, _ := m.acceptor.cells.find(name)
	if c == nil || c.bid == nil {
		return 0, 0, false
	}
	b := c.bid
	have = bits.OnesCount64(b.round.promises | b.round.rejects)
	if b.phase == writing {
		have = bits.OnesCount64(b.round.accepts | b.round.rejects)
	}
	return have, c.group.majority, (b.phase == reading || b.phase == writing) && b.round.sends > 1
}

func later(a, b Ballot) Ballot {
	if a.Less(b) {
		return b
	}
	return a
}
