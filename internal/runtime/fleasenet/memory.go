package fleasenet

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// A Memory is a network within one process, for tests. It has the same packets, and uses only goroutines,
// channels and timers, so that it works in the virtual time of testing/synctest. It is safe for concurrent
// use. The zero Memory has no members and no faults.
type Memory struct {
	mu      sync.Mutex
	latency Latency
	cut     map[direction]bool
	members map[flease.Process]*member
}

// Latency is the delay of packets.
type Latency struct {
	Delay  time.Duration // of every packet
	Jitter time.Duration // maximum additional random delay, which reorders packets
}

// A direction is from one process to another.
type direction struct{ from, to flease.Process }

// Join adds a process. Addresses are not needed. A process may join again after Close.
func (m *Memory) Join(c Config) (Net, error) {
	if err := c.checkMembers(); err != nil {
		return nil, err
	}
	n := &member{network: m, limit: cmp.Or(c.MaxPacket, MaxPacket), wake: make(chan struct{}, 1)}
	if err := n.begin(c); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.members[c.Self] != nil {
		return nil, leasehold.Errorf(op, leasehold.ErrExists, n.Addr(), "duplicate member: every process needs an ID of its own")
	}
	if m.members == nil {
		m.members = make(map[flease.Process]*member)
	}
	m.members[c.Self] = n
	back := func(to flease.Process, packet []byte) { m.carry(direction{c.Self, to}, packet) }
	n.running.Go(func() { n.read(&reader{inbox: n.inbox, back: back, from: func() string { return "memory" }}) })
	return n, nil
}

// SetLatency changes the latency of packets that are sent later.
func (m *Memory) SetLatency(l Latency) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.latency = l
}

// Cut drops all packets from one process to another that are sent later. The opposite direction is not
// affected.
func (m *Memory) Cut(from, to flease.Process) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cut == nil {
		m.cut = make(map[direction]bool)
	}
	m.cut[direction{from, to}] = true
}

// Mend undoes Cut.
func (m *Memory) Mend(from, to flease.Process) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.cut, direction{from, to})
}

// carry sends a packet. Losses by Cut are not counted.
func (m *Memory) carry(w direction, packet []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	to := m.members[w.to]
	if to == nil || m.cut[w] {
		return
	}
	delay := m.latency.Delay
	if m.latency.Jitter > 0 {
		delay += rand.N(m.latency.Jitter) //nolint:gosec // a network for tests
	}
	to.arrive(packet, time.Now().Add(delay))
}

const (
	// maxInFlight is the maximum number of packets in flight to a member.
	maxInFlight = 4096
	// maxGathered is the maximum size of packets that wait for Flush.
	maxGathered = 4 << 20
)

// A member is a process in a Memory.
type member struct {
	base
	network *Memory
	limit   int
	buffer  []byte // packets that wait for Flush
	waiting []memoryPacket

	mu       sync.Mutex
	inFlight []memoryPacket // in order of arrival
	wake     chan struct{}  // one element after a new packet
}

// A memoryPacket is a packet in flight.
type memoryPacket struct {
	packet []byte
	to     flease.Process
	due    time.Time
}

// Addr returns a name of the process.
func (n *member) Addr() string { return fmt.Sprintf("memory:%d", n.config.Self) }

func (n *member) Send(to flease.Process, e *flease.Envelope, msgs []flease.Message) {
	if to == n.config.Self || n.packer.numbers[to] == nil { // a Memory has no twins
		n.unknown(to)
		return
	}
	for first := true; first || len(msgs) > 0; first = false {
		if len(n.buffer) >= maxGathered {
			n.drop(full, 1)
			return
		}
		start := len(n.buffer)
		n.buffer, msgs = n.packer.pack(n.buffer, n.limit, to, e, msgs)
		n.waiting = append(n.waiting, memoryPacket{packet: n.buffer[start:], to: to})
	}
}

func (n *member) Flush() {
	for _, p := range n.waiting {
		n.network.carry(direction{n.config.Self, p.to}, p.packet)
	}
	clear(n.waiting)
	n.waiting, n.buffer = n.waiting[:0], n.buffer[:0]
}

// arrive queues a copy of a packet for delivery. The sender reuses its buffer, and the receiver overwrites the
// packet.
func (n *member) arrive(packet []byte, due time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.inFlight) >= maxInFlight {
		n.drop(full, 1)
		return
	}
	after, _ := slices.BinarySearchFunc(n.inFlight, due, func(p memoryPacket, due time.Time) int {
		return cmp.Or(p.due.Compare(due), -1) // after packets that are due at the same time
	})
	n.inFlight = slices.Insert(n.inFlight, after, memoryPacket{packet: slices.Clone(packet), due: due})
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// read delivers packets when they are due, until the context ends.
func (n *member) read(r *reader) {
	for n.ctx.Err() == nil {
		packet, wait := n.due()
		if packet != nil {
			r.packet(packet)
			continue
		}
		r.drain()
		n.sleep(wait)
	}
}

// due returns a packet that is due, or nil and the time until the next one, 0 if there is none.
func (n *member) due() ([]byte, time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.inFlight) == 0 {
		return nil, 0
	}
	if wait := time.Until(n.inFlight[0].due); wait > 0 {
		return nil, wait
	}
	packet := n.inFlight[0].packet
	n.inFlight = slices.Delete(n.inFlight, 0, 1)
	return packet, 0
}

// sleep waits for a new packet, and at most for a duration unless that is 0. Without packets in flight
// there is no timer, so that virtual time does not advance.
func (n *member) sleep(wait time.Duration) {
	var due <-chan time.Time
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-n.ctx.Done():
	case <-n.wake:
	case <-due:
	}
}

// Close leaves the network.
func (n *member) Close() error {
	n.network.mu.Lock()
	if n.network.members[n.config.Self] == n {
		delete(n.network.members, n.config.Self)
	}
	n.network.mu.Unlock()
	n.stop()
	n.running.Wait()
	return nil
}
