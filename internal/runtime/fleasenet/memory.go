package fleasenet

import (
	"cmp"
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// A Memory is a network within one process, for tests: the same packets, carried
// by goroutines, channels and timers alone, so that it also works in the virtual
// time of testing/synctest. All its methods may be called at any time. The zero
// Memory has no members and no faults.
type Memory struct {
	mu      sync.Mutex
	latency Latency
	cut     map[way]bool
	members map[flease.Process]*member
}

// Latency is how long packets take.
type Latency struct {
	Delay  time.Duration // of every packet
	Jitter time.Duration // up to so much more, so that packets overtake others
}

// A way is from one process to another.
type way struct{ from, to flease.Process }

// Join adds a process. Addresses are not needed. A process may join again when
// it has closed what it had.
func (m *Memory) Join(c Config) (Net, error) {
	if err := c.checkMembers(); err != nil {
		return nil, err
	}
	n := &member{network: m, self: c.Self, limit: cmp.Or(c.MaxPacket, MaxPacket), wake: make(chan struct{}, 1)}
	var err error
	if n.packer, err = newPacker(&c, &n.tally); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.members[c.Self] != nil {
		return nil, leasehold.Errorf(op, leasehold.ErrExists, n.Addr(), "this member is in the network already: every process needs an ID of its own")
	}
	if m.members == nil {
		m.members = make(map[flease.Process]*member)
	}
	m.members[c.Self] = n
	ctx, stop := context.WithCancel(context.Background())
	n.stop = stop
	in := newInbox(&c, n.packer, &n.tally)
	back := func(to flease.Process, packet []byte) { m.carry(way{c.Self, to}, packet) }
	from := func() string { return "memory" }
	n.running.Go(func() { n.read(ctx, &reader{inbox: in, back: back, from: from}) })
	return n, nil
}

// SetLatency changes how long packets take that are sent from now on.
func (m *Memory) SetLatency(l Latency) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.latency = l
}

// Cut loses all packets from one process to another from now on, those under way
// not. Packets the other way are not concerned.
func (m *Memory) Cut(from, to flease.Process) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cut == nil {
		m.cut = make(map[way]bool)
	}
	m.cut[way{from, to}] = true
}

// Mend undoes Cut.
func (m *Memory) Mend(from, to flease.Process) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.cut, way{from, to})
}

// carry takes a packet on its way. What is lost by a cut is not counted.
func (m *Memory) carry(w way, packet []byte) {
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
