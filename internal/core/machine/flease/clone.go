package flease

import (
	"encoding/binary"
	"maps"
	"slices"
)

// Clone returns a machine in the same state, for exploration. It shares with m only immutable state
// and the source of randomness. Notices and messages of m must have been taken before.
func (m *Machine) Clone() *Machine {
	c := *m
	c.notices, c.delivered, c.proposer.spare = nil, nil, nil
	c.admission.encounters = maps.Clone(m.admission.encounters)
	c.peers, c.order = make(map[Process]*peer, len(m.peers)), make([]*peer, len(m.order))
	for i, p := range m.order {
		twin := *p
		twin.out = nil
		c.order[i], c.peers[p.id] = &twin, &twin
	}
	c.acceptor.groups = make(map[string]*group, len(m.acceptor.groups))
	groups := make(map[*group]*group, len(m.acceptor.groups))
	for key, g := range m.acceptor.groups {
		twin := &group{members: g.members, majority: g.majority, self: g.self, cells: g.cells}
		for _, id := range g.members {
			twin.peers = append(twin.peers, c.peers[id])
		}
		c.acceptor.groups[key], groups[g] = twin, twin
	}
	c.acceptor.cells = m.acceptor.cells.twins(groups)
	bids := make(map[*bid]*bid, len(m.proposer.bids))
	c.proposer.bids = make([]*bid, len(m.proposer.bids))
	for i, old := range m.proposer.bids {
		twin := old.clone(c.acceptor.cells.slots[old.cell.ref])
		twin.cell.bid, c.proposer.bids[i], bids[old] = twin, twin, twin
	}
	c.proposer.alarms = m.proposer.alarms.clone(bids)
	return &c
}

func (b *bid) clone(c *cell) *bid {
	twin := *b
	twin.cell, twin.round.refs, twin.round.seen = c, slices.Clone(b.round.refs), slices.Clone(b.round.seen)
	return &twin
}

// AppendState appends an encoding of all state that determines the machine's behaviour. Machines
// with equal configurations and encodings behave identically.
func (m *Machine) AppendState(b []byte) []byte {
	w := encoder(b)
	w.flags(m.admission.ready(), m.clock.ownOff, m.admission.stage == retired, m.identity.greetSelf)
	w.time(m.admission.at)
	w.numbers(uint64(m.admission.since))
	w.time(m.clock.looked)
	w.numbers(m.cfg.Incarnation, uint64(m.clock.steady), m.acceptor.fence, m.proposer.serial, uint64(m.proposer.rtt), uint64(m.identity.lastSent))
	w.life(&m.identity.twin)
	w.ballot(m.proposer.top)
	w.ballot(m.acceptor.floor)
	for _, p := range m.order {
		w.numbers(p.incarnation, uint64(p.since), p.stranger, uint64(p.strangerSent), uint64(p.echo))
		w.flags(p.off, p.greet, p.query)
		w.lives(&p.lives)
	}
	for c := m.acceptor.cells.oldest; c != nil; c = c.newer {
		w.cell(c)
	}
	for _, bid := range m.proposer.bids {
		w.text(bid.cell.name)
		w.bid(bid)
	}
	return w
}

// An encoder is the encoding so far.
type encoder []byte

func (w *encoder) numbers(ns ...uint64) {
	for _, n := range ns {
		*w = binary.AppendUvarint(*w, n)
	}
}

func (w *encoder) flags(fs ...bool) {
	for _, f := range fs {
		if f {
			*w = append(*w, 1)
		} else {
			*w = append(*w, 0)
		}
	}
}

func (w *encoder) text(s string) {
	w.numbers(uint64(len(s)))
	*w = append(*w, s...)
}

func (w *encoder) time(t Time) { w.numbers(uint64(t.Mono), uint64(t.Wall)) }

func (w *encoder) ballot(k Ballot) { w.numbers(k.Interval, uint64(k.Round), uint64(k.Process)) }

func (w *encoder) value(v *Value) {
	w.numbers(uint64(v.Owner), v.Incarnation, v.Serial, v.Fence, uint64(v.Until), uint64(v.Left))
	w.flags(v.Released)
}

func (w *encoder) life(l *life) {
	w.numbers(l.incarnation, uint64(l.sent), uint64(l.answered))
	w.flags(l.waiting, l.alive)
}

func (w *encoder) lives(l *lives) {
	w.life(&l.recent[0])
	w.life(&l.recent[1])
	w.numbers(uint64(l.mark), uint64(l.pings), uint64(l.pinged), l.shun)
}

func (w *encoder) cell(c *cell) {
	w.text(c.name)
	w.ballot(c.promised)
	w.ballot(c.written)
	w.value(&c.value)
	w.numbers(c.promisee, uint64(c.deadline), c.fence, uint64(c.touched), uint64(c.ref), uint64(c.since))
	w.flags(c.watched)
}

func (w *encoder) bid(b *bid) {
	w.numbers(uint64(b.wish), uint64(b.phase), uint64(b.at), uint64(b.queued), uint64(b.purpose))
	w.ballot(b.round.ballot)
	w.numbers(b.round.promises, b.round.accepts, b.round.rejects, b.round.fence, uint64(b.round.sends), uint64(b.losses), uint64(len(b.round.seen)))
	for _, r := range b.round.refs {
		w.numbers(uint64(r))
	}
	for i := range b.round.seen {
		w.value(&b.round.seen[i].Value)
		w.ballot(b.round.seen[i].at)
		w.numbers(b.round.seen[i].by, uint64(b.round.seen[i].until))
	}
	w.value(&b.value)
	w.value(&b.awaited)
	w.numbers(uint64(b.awaits))
	w.time(b.decided)
	w.flags(b.held, b.insist, b.round.withheld)
	w.numbers(b.lease.Fence)
	w.time(b.lease.Until)
}

// AppendState appends an encoding of the message.
func (msg *Message) AppendState(b []byte) []byte {
	w := encoder(b)
	w.numbers(uint64(msg.Kind), uint64(msg.To), uint64(msg.From), msg.Fence)
	w.text(msg.Name)
	w.ballot(msg.Ballot)
	w.ballot(msg.Written)
	w.value(&msg.Value)
	return w
}
