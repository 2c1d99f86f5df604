package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/fleasebench"
	process "github.com/leasehold-dev/leasehold/server/proc"
)

// The floor is the cost of exchanging the messages alone. Three processes send each
// other datagrams of 64 questions and get as many answers, in two rounds, because a
// lease needs two. There are no leases, clocks, checksums or keys, and the only state
// is which datagrams are unanswered.
const (
	perDatagram = 64
	question    = 32 // bytes: a name of 16, a ballot of 12, and 4 more
	floorHeader = 16 // kind, round, and the datagram's number
	floorSize   = floorHeader + perDatagram*question
	floorWindow = 32 // unanswered datagrams at a time, so that no receive buffer overflows
	rounds      = 2
	floorResend = 50 * time.Millisecond // timeout after which an unanswered datagram is sent again
)

// The kinds of datagrams.
const (
	asks byte = iota
	answers
)

// FloorMember is one of the three. It is exported for net/rpc. One goroutine reads the
// socket and does all the work; it receives orders through want.
type FloorMember struct {
	socket    *net.UDPConn
	others    []netip.AddrPort
	datagrams int           // of a batch
	want      chan int      // datagrams
	done      chan struct{} // one value for each order carried out
	over      chan struct{} // closed when the goroutine has ended

	slots [floorWindow]slot
	next  uint64 // number of the datagram that is sent next
	left  int    // not started yet
	busy  int    // in progress
	out   [floorSize]byte
}

// A slot is a datagram whose rounds are in progress.
type slot struct {
	number uint64 // 0: the slot is free
	round  byte
	sent   time.Time
}

// FloorConfig is the configuration of one process of the floor.
type FloorConfig struct {
	Index   int
	Members []string // addresses of all, in order
}

func startFloor(ctx context.Context) (*group, error) {
	addrs, err := process.FreePorts(proposers)
	if err != nil {
		return nil, err
	}
	g, err := proc.StartGroup(ctx, roleFloor, proposers, func(i int) any { return FloorConfig{i, addrs} })
	return &group{members: g}, err
}

func startFloorMember(_ context.Context, c FloorConfig) (*FloorMember, error) {
	m := &FloorMember{want: make(chan int, 1), done: make(chan struct{}, 1), over: make(chan struct{})}
	for i, text := range c.Members {
		addr, err := netip.ParseAddrPort(text)
		if err != nil {
			return nil, err
		}
		if i != c.Index {
			m.others = append(m.others, addr)
			continue
		}
		if m.socket, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(addr)); err != nil {
			return nil, err
		}
	}
	if m.socket == nil {
		return nil, fmt.Errorf("member %d is not among %s", c.Index, c.Members)
	}
	_ = m.socket.SetReadBuffer(4 << 20) // as much as the system allows
	go m.run()
	return m, nil
}

// Prepare sets the size of the next batch.
func (m *FloorMember) Prepare(o fleasebench.Order, _ *struct{}) error {
	m.datagrams = (o.Batch + perDatagram - 1) / perDatagram
	return nil
}

// Acquire exchanges the messages of a batch.
func (m *FloorMember) Acquire(_ struct{}, b *fleasebench.Batch) (err error) {
	*b, err = fleasebench.Measure(func() (int, error) {
		m.want <- m.datagrams
		_ = m.socket.SetReadDeadline(time.Now()) // wakes the reader
		<-m.done
		return m.datagrams * perDatagram, nil
	})
	return err
}

// Release does nothing, because no leases are held.
func (*FloorMember) Release(struct{}, *struct{}) error { return nil }

// Close ends the exchange.
func (m *FloorMember) Close() error {
	err := m.socket.Close()
	<-m.over
	return err
}

func (m *FloorMember) run() {
	defer close(m.over)
	in := make([]byte, floorSize)
	for {
		n, from, err := m.socket.ReadFromUDPAddrPort(in)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			m.poll()
		case err != nil:
			return
		case n == floorSize:
			m.receive(in, from)
		}
	}
}

// poll starts new datagrams that were ordered, and repeats those that were lost.
func (m *FloorMember) poll() {
	now := time.Now()
	// An order that arrives after the channel was checked moves the deadline set before.
	_ = m.socket.SetReadDeadline(now.Add(floorResend))
	select {
	case m.left = <-m.want:
		m.fill()
	default:
	}
	for i := range m.slots {
		if s := &m.slots[i]; s.number != 0 && now.Sub(s.sent) > floorResend {
			m.send(s)
		}
	}
}

func (m *FloorMember) fill() {
	for i := range m.slots {
		if m.left == 0 {
			return
		}
		if m.slots[i].number == 0 {
			m.begin(i)
		}
	}
}

func (m *FloorMember) begin(i int) {
	m.left--
	m.busy++
	m.next++
	m.slots[i] = slot{number: m.next*floorWindow + uint64(i)}
	m.send(&m.slots[i])
}

func (m *FloorMember) send(s *slot) {
	s.sent = time.Now()
	m.out[0], m.out[1] = asks, s.round
	binary.LittleEndian.PutUint64(m.out[8:], s.number)
	for _, to := range m.others {
		_, _ = m.socket.WriteToUDPAddrPort(m.out[:], to) // a lost datagram is sent again after the timeout
	}
}

// receive answers a question. The first answer to a question of this member makes a
// majority, together with the member itself.
func (m *FloorMember) receive(in []byte, from netip.AddrPort) {
	if in[0] == asks {
		in[0] = answers
		_, _ = m.socket.WriteToUDPAddrPort(in, from)
		return
	}
	number := binary.LittleEndian.Uint64(in[8:])
	i := int(number % floorWindow)
	s := &m.slots[i]
	if s.number != number || s.round != in[1] {
		return // the second answer
	}
	if s.round++; s.round < rounds {
		m.send(s)
		return
	}
	s.number = 0
	m.busy--
	switch {
	case m.left > 0:
		m.begin(i)
	case m.busy == 0:
		m.done <- struct{}{}
	}
}
