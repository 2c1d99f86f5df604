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

// A group is the members of a set of resources.
type group struct {
	members  []Process
	peers    []*peer // of each member; nil for this process
	majority int
	self     int // our index; -1 if we are not a member
	cells    int // number of known resources of the group
}

// index returns the index of a member, -1 if p is not a member.
func (g *group) index(p Process) int { return slices.Index(g.members, p) }

// A cell is the state of one resource.
type cell struct {
	name  string
	hash  uint32 // of the name
	ref   Ref
	group *group // nil if the cell is not in use

	// State of the acceptor.
	promised Ballot
	promisee uint64 // the incarnation that got the promise
	written  Ballot
	value    Value
	deadline mono.Instant // end of the owner's lease at the latest, on our monotonic clock
	fence    uint64       // highest seen

	bid     *bid // our bid; nil if there is none
	watched bool
	since   mono.Instant // start of watching

	touched      mono.Instant // last promise or write, less at most grain
	older, newer *cell        // in the order of touched
}

// cell returns the cell of a resource, or adds one, on behalf of a process. That process and this
// one must be members of its group.
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
		return nil, leasehold.Errorf(op, leasehold.ErrLimit, name, "the limit of %d resources is reached", m.cfg.Max)
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

// check returns an error if p is not a member.
func (g *group) check(name string, p Process) error {
	if g.index(p) < 0 {
		return leasehold.Errorf(op, leasehold.ErrInvalid, name, "member %d is not in its group %v", p, g.members)
	}
	return nil
}

// drop removes a cell.
func (ac *acceptor) drop(c *cell) {
	c.group.cells--
	ac.cells.remove(c)
}

// maxGroups is the number of groups without known resources that are kept, in addition to the
// number of the other groups.
const maxGroups = 1024

// groupOf returns the group of a resource. Equal groups are shared.
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
			return nil, leasehold.Errorf(op, leasehold.ErrInvalid, name, "member %d of its group is unknown: add it to the members", p)
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

// acceptorOf returns the cell of a read, nil if the read is not for us.
func (m *Machine) acceptorOf(now Time, p *peer, msg *Message) *cell {
	c, err := m.cell(now, msg.Name, p.id)
	if err != nil {
		m.counts.Foreign++
		return nil
	}
	return c
}

// read promises a round, unless a later one was promised. A retransmitted read gets the same reply,
// but not a read of another process with the same ballot.
//
// A promise voids the round in which the owner of a lease renews it. So while a lease is in force,
// other processes get no promise unless they insist: otherwise frequent queries would take the
// lease away.
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

// report returns a reply to a read with the state of the cell.
func (m *Machine) report(now Time, c *cell, kind Kind, msg *Message) Message {
	v := c.value
	v.Left = m.left(now, c)
	return Message{Kind: kind, To: msg.From, From: c.ref, Name: c.name, Ballot: msg.Ballot, Written: c.written, Value: v, Fence: c.fence}
}

// inForce reports whether the lease is in force according to this acceptor: it has not ended on
// either clock. A value binds proposers for longer, until it has ended on both clocks. So a wrong
// local clock does not block queries.
func (m *Machine) inForce(now Time, c *cell) bool {
	v := &c.value
	return v.Owner != 0 && !v.Released && !now.reached(Time{c.deadline, v.Until.Add(m.cfg.Epsilon)})
}

// store stores a value, only in the round that was promised last: a promise that was lost does not
// count. It does not reply to a value that is older than the stored one of the same round.
func (m *Machine) store(now Time, c *cell, msg *Message, incarnation uint64) (Message, bool) {
	if msg.Value.Released && c.bid != nil && c.bid.phase == waiting {
		m.at(c.bid, now.Mono.Add(m.jitter(m.cfg.Backoff))) // a release wakes the waiting bid, even if it cannot be stored
	}
	if msg.Ballot != c.promised || incarnation != c.promisee {
		return m.unpromised(msg), true
	}
	v := &msg.Value
	if v.Until.Sub(now.Wall) > m.cfg.Lease+2*m.cfg.Epsilon {
		m.counts.BadTime++ // it would block the resource for too long
		return Message{}, false
	}
	if c.written == msg.Ballot && v.Serial < c.value.Serial {
		return Message{}, false
	}
	deadline := now.Mono.Add(m.cfg.Drift.Stretch(v.Left))
	if v.same(&c.value) {
		deadline = min(deadline, c.deadline) // a report of a known lease does not extend it
	}
	changed := c.value.Owner != v.Owner || c.value.Fence != v.Fence || c.value.Released != v.Released
	c.written, c.value, c.deadline = msg.Ballot, *v, deadline
	if b := c.bid; b != nil && (b.awaited.Owner != v.Owner || b.awaited.Fence != v.Fence) {
		b.awaited = Value{} // the reported value is older
	}
	m.acceptor.cells.touch(now.Mono, c, m.grain())
	c.fence = max(c.fence, v.Fence)
	if changed {
		m.notifyWatcher(now, c)
	}
	return Message{Kind: KindAccept, To: msg.From, Name: c.name, Ballot: msg.Ballot, Value: Value{Serial: v.Serial}}, true
}

// unpromised rejects a write in a round that was not promised, or whose cell was dropped. The
// resource cannot be determined, but a ballot above all known ones is sufficient.
func (m *Machine) unpromised(msg *Message) Message {
	return Message{Kind: KindReject, To: msg.From, Ballot: msg.Ballot, Written: m.proposer.top}
}

// left is the remaining time of a lease on the owner's clock. It is shorter than our deadline by at
// least the stretch factor, so it does not grow when it is passed from acceptor to acceptor.
func (m *Machine) left(now Time, c *cell) time.Duration {
	d := c.deadline.Sub(now.Mono)
	if d <= 0 {
		return 0
	}
	return time.Duration(float64(d)/float64(m.cfg.Drift)) + 1
}

// over reports whether the lease of a value has ended on both clocks.
func (m *Machine) over(now Time, v *Value, left mono.Instant) bool {
	return now.passed(Time{left, v.Until.Add(m.cfg.Epsilon)})
}

// retention is how long an unused cell is kept.
func (m *Machine) retention() time.Duration { return m.cfg.Drift.Stretch(m.cfg.Lease) + m.cfg.Epsilon }

// grain is the precision of touched.
func (m *Machine) grain() time.Duration { return m.cfg.Lease / 16 }

// nextEviction returns when the least recently touched cell is due for removal.
func (m *Machine) nextEviction() mono.Instant {
	if c := m.acceptor.cells.oldest; c != nil {
		return c.touched.Add(m.retention() + m.grain())
	}
	return mono.Never
}

// evict removes a cell that is not needed any more. The machine keeps the maximum of its promise
// and fence.
func (m *Machine) evict(now Time, c *cell) {
	empty := c.value.Owner == 0 || c.value.Released || m.over(now, &c.value, c.deadline)
	if !empty || c.bid != nil || c.watched {
		m.acceptor.cells.touch(now.Mono, c, 0)
		return
	}
	m.acceptor.floor = later(m.acceptor.floor, c.promised)
	m.acceptor.fence = max(m.acceptor.fence, c.fence)
	m.acceptor.drop(c)
}

// Watch enables or disables notices about changes of a resource's holder.
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

// Look returns the state of a resource in a [Changed] notice. It is a hint: an acceptor's value may
// be stale, or not committed. It names this process as the holder only if it has the lease.
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
		v, lasts = &b.awaited, true // newer, from other acceptors
	}
	switch {
	case lasts && v.Owner != m.cfg.Self:
		n.Holder, n.Fence, n.Until = v.Owner, v.Fence, v.Until
	case lasts && m.ours(v):
		n.Unsure = true // our bid is not decided yet
	case v.Owner == 0:
		n.Unsure = !m.admission.ready() || now.Mono.Sub(max(m.admission.since, c.since)) < m.cfg.Lease // a holder would have renewed it in this time
	}
	return n
}

// lasts reports whether the lease of a value may be held.
func (m *Machine) lasts(now Time, v *Value, deadline mono.Instant) bool {
	return v.Owner != 0 && !v.Released && !m.over(now, v, deadline)
}

// notifyWatcher emits a notice about the holder of a watched resource.
func (m *Machine) notifyWatcher(now Time, c *cell) {
	if c.watched {
		m.notice(m.seen(now, c))
	}
}

// Answers returns how many members have replied in the present round of our bid for a resource, and
// how many must. waiting is false if no replies are outstanding, or if the round has just begun.
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
