package main

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/bench/cast"
)

// The floor: what the messages of leases cost with nothing behind them. Three
// processes send each other datagrams of 64 questions and get as many answers,
// in two rounds, as a lease needs two; there are no leases, clocks, checksums or
// keys in it, and nothing is remembered but which datagrams are unanswered.
const (
	perDatagram = 64
	question    = 32 // bytes: a name of 16, a ballot of 12, and some change
	floorHeader = 16 // kind, round, and the datagram's number
	floorSize   = floorHeader + perDatagram*question
	floorWindow = 32 // datagrams that are unanswered at a time: no receiver's buffer overflows
	rounds      = 2
	floorResend = 50 * time.Millisecond // what was lost is sent again after that
)

// The kinds of datagrams.
const (
	asks byte = iota
	answers
)

// A floorMember is one of the three. Its socket is read by one goroutine, which
// does everything; orders reach it through want.
type floorMember struct {
	socket *net.UDPConn
	others []netip.AddrPort
	want   chan int      // datagrams
	done   chan struct{} // one value for each order carried out
	over   chan struct{} // closed when the goroutine has ended

	slots [floorWindow]slot
	next  uint64 // number of the datagram that is sent next
	left  int    // still to be begun
	busy  int    // under way
	out   [floorSize]byte
}

// A slot is a datagram on its way through its rounds.
type slot struct {
	number uint64 // 0: the slot is free
	round  byte
	sent   time.Time
}

func startFloor(_ context.Context, args []string) (cast.Member, string, error) {
	flags := flag.NewFlagSet("floor-member", flag.ContinueOnError)
	index := flags.Int("index", 0, "which member this is")
	members := flags.String("members", "", "addresses of all, in order")
	if err := flags.Parse(args); err != nil {
		return nil, "", err
	}
	m := &floorMember{want: make(chan int, 1), done: make(chan struct{}, 1), over: make(chan struct{})}
	for i, text := range strings.Split(*members, ",") {
		addr, err := netip.ParseAddrPort(text)
		if err != nil {
			return nil, "", err
		}
		if i != *index {
			m.others = append(m.others, addr)
			continue
		}
		if m.socket, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(addr)); err != nil {
			return nil, "", err
		}
	}
	if m.socket == nil {
		return nil, "", fmt.Errorf("member %d is not among %s", *index, *members)
	}
	_ = m.socket.SetReadBuffer(4 << 20) // as much as the system allows
	go m.run()
	return m, "", nil
}

func (m *floorMember) Obey(_ context.Context, o order) (answer, error) {
	if o.Do != orderAcquire {
		return answer{}, cast.UnknownOrder(o)
	}
	datagrams := (o.Batch + perDatagram - 1) / perDatagram
	before, begin := cast.CPUTime(), time.Now()
	m.want <- datagrams
	_ = m.socket.SetReadDeadline(begin) // wakes the reader
	<-m.done
	end := time.Now()
	return answer{
		Leases: datagrams * perDatagram, Begin: begin.UnixNano(), End: end.UnixNano(), CPU: int64(cast.CPUTime() - before),
	}, nil
}

func (m *floorMember) Close() error {
	err := m.socket.Close()
	<-m.over
	return err
}

// run reads until the socket is closed.
func (m *floorMember) run() {
	defer close(m.over)
	in := make([]byte, floorSize)
	for {
		n, from, err := m.socket.ReadFromUDPAddrPort(in)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			m.look()
		case err != nil:
			return
		case n == floorSize:
			m.receive(in, from)
		}
	}
}

// look begins what is wanted, and sends again what was lost.
func (m *floorMember) look() {
	now := time.Now()
	// An order that comes after we looked moves the deadline that we set before.
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

// fill begins datagrams while there is room.
func (m *floorMember) fill() {
	for i := range m.slots {
		if m.left == 0 {
			return
		}
		if m.slots[i].number == 0 {
			m.begin(i)
		}
	}
}

func (m *floorMember) begin(i int) {
	m.left--
	m.busy++
	m.next++
	m.slots[i] = slot{number: m.next*floorWindow + uint64(i)}
	m.send(&m.slots[i])
}

// send sends a slot's datagram to both others.
func (m *floorMember) send(s *slot) {
	s.sent = time.Now()
	m.out[0], m.out[1] = asks, s.round
	binary.LittleEndian.PutUint64(m.out[8:], s.number)
	for _, to := range m.others {
		_, _ = m.socket.WriteToUDPAddrPort(m.out[:], to) // what is lost is sent again
	}
}

// receive answers a question. The first answer to one of ours makes a majority,
// with ourselves.
func (m *floorMember) receive(in []byte, from netip.AddrPort) {
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
