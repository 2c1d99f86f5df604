package fleasenet

import (
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/internal/testkit/leak"
	"github.com/leasehold-dev/leasehold/secret"
)

func TestMain(m *testing.M) { leak.Main(m) }

// patience is the timeout of a test for an immediate event.
const patience = 20 * time.Second

// closeLater closes c at the end of the test.
func closeLater(t *testing.T, c io.Closer) {
	t.Cleanup(func() { _ = c.Close() })
}

// A mailbox receives deliveries up to its capacity.
type mailbox chan delivery

func newMailbox() mailbox { return make(mailbox, 1024) }

func (m mailbox) receive(e *flease.Envelope, msgs []flease.Message, _ *Source) {
	var d delivery
	d.take(e, msgs, nil)
	select {
	case m <- d:
	default:
	}
}

// next waits for a delivery.
func (m mailbox) next(t *testing.T) delivery {
	t.Helper()
	select {
	case d := <-m:
		return d
	case <-time.After(patience):
		t.Fatal("no delivery")
		return delivery{}
	}
}

// pester sends greetings from process 1 to process 2 until one is delivered.
func (m mailbox) pester(t *testing.T, one Net) {
	t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	deadline := time.After(patience)
	for {
		one.Send(2, &flease.Envelope{From: 1, Incarnation: 11}, nil)
		one.Flush()
		select {
		case <-m:
			return
		case <-again.C:
		case <-deadline:
			t.Fatalf("no delivery; counted %+v", one.Counters())
		}
	}
}

// messages waits for n messages, and returns them in order.
func (m mailbox) messages(t *testing.T, n int) (all []flease.Message) {
	t.Helper()
	for len(all) < n {
		all = append(all, m.next(t).Messages...)
	}
	return all
}

// openUDP opens processes 1, 2 and so on, one per receiver, which are peers. Incarnations are 11, 22 and so
// on.
func openUDP(t testing.TB, key secret.Text, maxPacket int, receive ...func(*flease.Envelope, []flease.Message, *Source)) []Net {
	t.Helper()
	var peers []Peer
	var conns []*net.UDPConn
	for i := range receive {
		conn, err := listenUDP("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
		peers = append(peers, Peer{Process: flease.Process(i + 1), Addr: conn.LocalAddr().String()})
	}
	var nets []Net
	for i, conn := range conns {
		nets = append(nets, startUDP(t, conn, Config{
			Self: peers[i].Process, Incarnation: 11 * uint64(i+1), Peers: peers,
			Key: key, MaxPacket: maxPacket, Receive: receive[i],
		}))
	}
	return nets
}

func startUDP(t testing.TB, conn *net.UDPConn, c Config) Net {
	t.Helper()
	if err := c.checkMembers(); err != nil {
		t.Fatal(err)
	}
	n, err := newUDPNet(c, conn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func TestUDPCarriesMessages(t *testing.T) {
	for _, key := range []secret.Text{{}, aKey} {
		one, two := newMailbox(), newMailbox()
		nets := openUDP(t, key, UsualPacket, one.receive, two.receive)
		there := usual(flease.KindWrite, 300) // several packets
		e := flease.Envelope{From: 1, Incarnation: 11, To: 22, Sent: someSent, Echo: 5}
		nets[0].Send(2, &e, there)
		nets[0].Flush()
		if diff := cmp.Diff(there, two.messages(t, len(there))); diff != "" {
			t.Error(diff)
		}
		greeting := flease.Envelope{From: 2, Incarnation: 22, To: 11, Sent: someSent}
		nets[1].Send(1, &greeting, nil)
		nets[1].Flush()
		if diff := cmp.Diff(delivery{Envelope: greeting}, one.next(t)); diff != "" {
			t.Error(diff)
		}
		sent, received := nets[0].Counters(), nets[1].Counters()
		if sent.MessagesOut != 300 || received.MessagesIn != 300 ||
			sent.PacketsOut != received.PacketsIn || sent.BytesOut != received.BytesIn || sent.PacketsOut < 5 {
			t.Errorf("counted %+v and %+v", sent, received)
		}
	}
}

// Send flushes when its buffer is full.
func TestUDPSendFlushesFullBuffer(t *testing.T) {
	two := newMailbox()
	nets := openUDP(t, aKey, MinPacket, func(*flease.Envelope, []flease.Message, *Source) {}, two.receive)
	msgs := usual(flease.KindRead, 2*maxBatch*15)
	e := flease.Envelope{From: 1, Incarnation: 11, To: 22, Sent: someSent}
	nets[0].Send(2, &e, msgs)
	early := two.next(t).Messages
	nets[0].Flush()
	if diff := cmp.Diff(msgs, append(early, two.messages(t, len(msgs)-len(early))...)); diff != "" {
		t.Error(diff)
	}
}

// Drained is called after the deliveries, by the same goroutine.
func TestUDPDrained(t *testing.T) {
	conn, err := listenUDP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	events := make(chan string, 1024)
	n := startUDP(t, conn, Config{
		Self: 2, Incarnation: 22, Peers: []Peer{{Process: 1, Addr: "127.0.0.1:9"}},
		Receive: func(*flease.Envelope, []flease.Message, *Source) { events <- "received" },
		Drained: func() { events <- "drained" },
	})
	p, _, _ := endpoints(t, secret.Text{})
	packet, _ := p.pack(nil, MinPacket, 2, &flease.Envelope{From: 1, Incarnation: 11}, nil)
	from, err := net.Dial("udp", n.Addr())
	if err != nil {
		t.Fatal(err)
	}
	closeLater(t, from)
	for _, b := range [][]byte{packet, packet} { // the second is a replay, which Drained ignores
		if _, err := from.Write(slices.Clone(b)); err != nil {
			t.Fatal(err)
		}
	}
	next, _ := p.pack(nil, MinPacket, 2, &flease.Envelope{From: 1, Incarnation: 11}, nil)
	if _, err := from.Write(next); err != nil {
		t.Fatal(err)
	}
	received, drained := 0, false
	for received < 2 || !drained {
		select {
		case event := <-events:
			drained = event == "drained"
			if event == "received" {
				received++
			}
		case <-time.After(patience):
			t.Fatalf("%d received, drained: %t", received, drained)
		}
	}
	if c := n.Counters(); c.Replayed != 1 || c.PacketsIn != 2 {
		t.Errorf("counted %+v", c)
	}
}

// Invalid datagrams of all sizes are counted and dropped.
func TestUDPDropsAndGoesOn(t *testing.T) {
	two := newMailbox()
	nets := openUDP(t, aKey, 0, func(*flease.Envelope, []flease.Message, *Source) {}, two.receive)
	from, err := net.Dial("udp", nets[1].Addr())
	if err != nil {
		t.Fatal(err)
	}
	closeLater(t, from)
	for _, size := range []int{1, minPacketSize, MaxPacket, MaxPacket + 1, 2*MaxPacket - 100} {
		if _, err := from.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	nets[0].Send(2, &flease.Envelope{From: 1, Incarnation: 11}, nil)
	nets[0].Send(7, &flease.Envelope{From: 1, Incarnation: 11}, nil)
	nets[0].Send(1, &flease.Envelope{From: 1, Incarnation: 11}, nil)
	nets[0].Flush()
	two.next(t)
	if c := nets[1].Counters(); c.Malformed != 3 || c.Oversized != 2 || c.PacketsIn != 1 {
		t.Errorf("counted %+v", c)
	}
	if c := nets[0].Counters(); c.Foreign != 1 || c.PacketsOut != 1 {
		t.Errorf("to an unknown process: counted %+v", c)
	}
}

// A socket on the unspecified address reaches peers of both IP versions and by name.
func TestUDPBothVersions(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:0", "[::1]:0"} {
		peer, err := listenUDP(listen)
		if err != nil {
			t.Logf("%s: this computer cannot: %v", listen, err)
			continue
		}
		everywhere, err := listenUDP(":0")
		if err != nil {
			t.Fatal(err)
		}
		two := newMailbox()
		startUDP(t, peer, Config{Self: 2, Incarnation: 22, Key: aKey, Peers: []Peer{{Process: 1, Addr: listen}}, Receive: two.receive})
		one := startUDP(t, everywhere, Config{
			Self: 1, Incarnation: 11, Key: aKey, Receive: two.receive,
			Peers: []Peer{{Process: 2, Addr: peer.LocalAddr().String()}},
		})
		one.Send(2, &flease.Envelope{From: 1, Incarnation: 11}, nil)
		one.Flush()
		two.next(t)
	}
}

// The name of a peer is resolved; until then packets are dropped.
func TestUDPNames(t *testing.T) {
	peer, err := listenUDP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := listenUDP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(peer.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	two := newMailbox()
	startUDP(t, peer, Config{Self: 2, Incarnation: 22, Peers: []Peer{{Process: 1, Addr: "127.0.0.1:1"}}, Receive: two.receive})
	one := startUDP(t, conn, Config{
		Self: 1, Incarnation: 11, Receive: two.receive,
		Peers: []Peer{{Process: 2, Addr: "localhost:" + port}, {Process: 3, Addr: "127.0.0.1:1"}},
	})
	one.(*udpNet).peers[3].at.Store(nil) // as before the first resolution
	two.pester(t, one)
	before := one.Counters().Failed
	one.Send(3, &flease.Envelope{From: 1, Incarnation: 11}, nil)
	if got := one.Counters().Failed; got != before+1 {
		t.Errorf("%d failed, want %d", got, before+1)
	}
}
