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
	n := &member{network: m, limit: cmp.Or(c.MaxPacket, MaxPacket), wake: make(chan struct{}, 1)}
	if err := n.begin(c); err != nil {
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
	back := func(to flease.Process, packet []byte) { m.carry(way{c.Self, to}, packet) }
	n.running.Go(func() { n.read(&reader{inbox: n.inbox, back: back, from: func() string { return "memory" }}) })
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

const (
	// maxUnderWay is how many packets may be on their way to a member of a Memory.
	maxUnderWay = 4096
	// maxGathered is how many bytes of packets wait for Flush at most.
	maxGathered = 4 << 20
)

// A member is a process in a Memory.
type member struct {
	party
	network *Memory
	limit   int
	buffer  []byte // the packets that wait for Flush
	waiting []parcel

	mu       sync.Mutex
	underWay []parcel      // in the order in which they arrive
	wake     chan struct{} // has one when something came that may be due sooner
}

// A parcel is a packet under way.
type parcel struct {
	packet []byte
	to     flease.Process
	due    time.Time
}

// Addr names the process.
func (n *member) Addr() string { return fmt.Sprintf("memory:%d", n.config.Self) }

func (n *member) Send(to flease.Process, e *flease.Envelope, msgs []flease.Message) {
	if to == n.config.Self || n.packer.numbers[to] == nil { // there is one process of each id here
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
		n.waiting = append(n.waiting, parcel{packet: n.buffer[start:], to: to})
	}
}

func (n *member) Flush() {
	for _, p := range n.waiting {
		n.network.carry(way{n.config.Self, p.to}, p.packet)
	}
	clear(n.waiting)
	n.waiting, n.buffer = n.waiting[:0], n.buffer[:0]
}

// arrive lets a packet come at a time. It takes a copy, since the sender uses the
// buffer again, and the receiver writes over it.
func (n *member) arrive(packet []byte, due time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.underWay) >= maxUnderWay {
		n.drop(full, 1)
		return
	}
	after, _ := slices.BinarySearchFunc(n.underWay, due, func(p parcel, due time.Time) int {
		return cmp.Or(p.due.Compare(due), -1) // behind those that are due at the same time
	})
	n.underWay = slices.Insert(n.underWay, after, parcel{packet: slices.Clone(packet), due: due})
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// read hands over what is due until the context ends.
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

// due returns a packet that has arrived, or nil and when the next one does, 0 if
// there is none.
func (n *member) due() ([]byte, time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.underWay) == 0 {
		return nil, 0
	}
	if wait := time.Until(n.underWay[0].due); wait > 0 {
		return nil, wait
	}
	packet := n.underWay[0].packet
	n.underWay = slices.Delete(n.underWay, 0, 1)
	return packet, 0
}

// sleep waits for something new, and for so long at most, unless that is 0. With
// nothing under way there is no timer, so that virtual time has nowhere to go.
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
