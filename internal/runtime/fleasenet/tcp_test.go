package fleasenet

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/secret"
)

func listenTCP(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func startTCP(t *testing.T, l net.Listener, c Config) Net {
	t.Helper()
	if err := c.checkMembers(); err != nil {
		t.Fatal(err)
	}
	n, err := newTCPNet(c, l)
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

// openTCP opens processes 1 and 2.
func openTCP(t *testing.T, key secret.Text, c *tls.Config, one, two mailbox) [2]Net {
	t.Helper()
	l1, l2 := listenTCP(t), listenTCP(t)
	peers := []Peer{{Process: 1, Addr: l1.Addr().String()}, {Process: 2, Addr: l2.Addr().String()}}
	return [2]Net{
		startTCP(t, l1, Config{Self: 1, Incarnation: 11, Peers: peers, Key: key, TLS: c, Receive: one.receive}),
		startTCP(t, l2, Config{Self: 2, Incarnation: 22, Peers: peers, Key: key, TLS: c, Receive: two.receive}),
	}
}

func TestTCPCarriesMessages(t *testing.T) {
	for _, test := range []struct {
		name string
		key  secret.Text
		tls  *tls.Config
	}{{"plain", secret.Text{}, nil}, {"sealed", aKey, nil}, {"TLS", secret.Text{}, certified(t)}, {"both", aKey, certified(t)}} {
		t.Run(test.name, func(t *testing.T) {
			one, two := newMailbox(), newMailbox()
			nets := openTCP(t, test.key, test.tls, one, two)
			there := usual(flease.KindWrite, 3000) // several packets
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
			if sent.MessagesOut != 3000 || received.MessagesIn != 3000 || sent.PacketsOut != received.PacketsIn || sent.PacketsOut < 3 {
				t.Errorf("counted %+v and %+v", sent, received)
			}
		})
	}
}

// Drained is called once after the packets of one read.
func TestTCPDrained(t *testing.T) {
	events := make(chan string, 16)
	n := startTCP(t, listenTCP(t), Config{
		Self: 2, Incarnation: 22, Peers: []Peer{{Process: 1, Addr: "127.0.0.1:1"}},
		Receive: func(*flease.Envelope, []flease.Message, *Source) { events <- "received" },
		Drained: func() { events <- "drained" },
	})
	conn, err := net.Dial("tcp", n.Addr())
	if err != nil {
		t.Fatal(err)
	}
	closeLater(t, conn)
	p, _, _ := endpoints(t, secret.Text{})
	var l frames
	for range 3 {
		l.add(p, MinPacket, 2, &flease.Envelope{From: 1, Incarnation: 11}, nil)
	}
	if _, err := conn.Write(l.bytes); err != nil { // one segment, one read
		t.Fatal(err)
	}
	for i, want := range []string{"received", "received", "received", "drained"} {
		select {
		case got := <-events:
			if got != want {
				t.Errorf("event %d: %s, want %s", i, got, want)
			}
		case <-time.After(patience):
			t.Fatalf("no event %d", i)
		}
	}
}

// Clients without a certificate are rejected.
func TestTCPRequiresCertificate(t *testing.T) {
	two := newMailbox()
	l := listenTCP(t)
	n := startTCP(t, l, Config{Self: 2, Incarnation: 22, Peers: []Peer{{Process: 1, Addr: "127.0.0.1:1"}}, TLS: certified(t), Receive: two.receive})
	conn, err := tls.Dial("tcp", n.Addr(), &tls.Config{InsecureSkipVerify: true})
	if err == nil {
		_ = conn.SetDeadline(time.Now().Add(patience))
		_, err = conn.Read(make([]byte, 1))
		_ = conn.Close()
	}
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a client without certificate was accepted: %v", err)
	}
}

// The connection to a restarted peer is established again.
func TestTCPReconnects(t *testing.T) {
	l1, l2 := listenTCP(t), listenTCP(t)
	addr := l2.Addr().String()
	peers := []Peer{{Process: 1, Addr: l1.Addr().String()}, {Process: 2, Addr: addr}}
	two := newMailbox()
	one := startTCP(t, l1, Config{Self: 1, Incarnation: 11, Peers: peers, Receive: two.receive})
	first := startTCP(t, l2, Config{Self: 2, Incarnation: 22, Peers: peers, Receive: two.receive})
	two.pester(t, one)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	l2, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	for len(two) > 0 {
		<-two
	}
	startTCP(t, l2, Config{Self: 2, Incarnation: 23, Peers: peers, Receive: two.receive})
	two.pester(t, one)
}

// A peer that does not read costs bounded memory and blocks neither Send nor Close.
func TestTCPSlowPeer(t *testing.T) {
	deaf := listenTCP(t)
	closeLater(t, deaf)
	accepted := make(chan net.Conn, 1)
	go func() {
		conn, err := deaf.Accept()
		if err == nil {
			accepted <- conn
		}
		close(accepted)
	}()
	one := startTCP(t, listenTCP(t), Config{
		Self: 1, Incarnation: 11, Peers: []Peer{{Process: 2, Addr: deaf.Addr().String()}}, Receive: newMailbox().receive,
	})
	clog(t, one)
	line := one.(*tcpNet).conns[2]
	line.mu.Lock()
	if n := len(line.queue.bytes); n > maxQueue+2*MaxPacket {
		t.Errorf("%d bytes queued", n)
	}
	line.mu.Unlock()
	start := time.Now()
	if err := one.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > writeTimeout/2 {
		t.Errorf("Close took %v", took)
	}
	if conn := <-accepted; conn != nil {
		_ = conn.Close()
	}
}

// clog sends to process 2 until all packets are dropped.
func clog(t *testing.T, one Net) {
	t.Helper()
	e := flease.Envelope{From: 1, Incarnation: 11, Sent: someSent}
	msgs := usual(flease.KindWrite, 10_000)
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	deadline := time.After(patience)
	for accepted := time.Now(); time.Since(accepted) < 100*time.Millisecond; {
		before := one.Counters()
		one.Send(2, &e, msgs)
		one.Flush()
		after := one.Counters()
		if after.Full-before.Full < after.PacketsOut-before.PacketsOut {
			accepted = time.Now()
		}
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("not all packets are dropped: %+v", after)
		}
	}
}

// Packets to an unreachable peer are dropped and counted.
func TestTCPUnreachable(t *testing.T) {
	gone := listenTCP(t)
	addr := gone.Addr().String()
	_ = gone.Close()
	one := startTCP(t, listenTCP(t), Config{Self: 1, Incarnation: 11, Peers: []Peer{{Process: 2, Addr: addr}}, Receive: newMailbox().receive})
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	deadline := time.After(patience)
	for one.Counters().Failed < 2 {
		one.Send(2, &flease.Envelope{From: 1, Incarnation: 11}, nil)
		one.Flush()
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("counted %+v", one.Counters())
		}
	}
}

// Invalid packets end the connection, and are counted.
func TestTCPInvalidPackets(t *testing.T) {
	p, _, _ := endpoints(t, aKey)
	other, _, _ := endpoints(t, secret.New("another key, as long"))
	e := flease.Envelope{From: 1, Incarnation: 11}
	frame := func(p *packer, times int) (b []byte) {
		var l frames
		l.add(p, MinPacket, 2, &e, nil)
		for range times {
			b = append(b, l.bytes...)
		}
		return b
	}
	for _, test := range []struct {
		name string
		send []byte
		ends bool // the receiver closes the connection
		want Counters
	}{
		{"good", frame(p, 1), false, Counters{PacketsIn: 1}},
		{"a replay", frame(p, 2), false, Counters{PacketsIn: 1, Replayed: 1}},
		{"another key", frame(other, 1), true, Counters{Unauthentic: 1}},
		{"too large", binary.LittleEndian.AppendUint32(nil, MaxPacket+1), true, Counters{Oversized: 1}},
		{"huge", binary.LittleEndian.AppendUint32(nil, 1<<32-1), true, Counters{Oversized: 1}},
		{"empty", make([]byte, lengthSize), true, Counters{Malformed: 1}},
		{"http", []byte("GE\x00\x00" + string(make([]byte, 'G'+256*'E'))), true, Counters{Malformed: 1}},
		{"cut off", frame(p, 1)[:20], false, Counters{Malformed: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := startTCP(t, listenTCP(t), Config{
				Self: 2, Incarnation: 22, Key: aKey, Peers: []Peer{{Process: 1, Addr: "127.0.0.1:1"}}, Receive: newMailbox().receive,
			})
			conn, err := net.Dial("tcp", n.Addr())
			if err != nil {
				t.Fatal(err)
			}
			closeLater(t, conn)
			if _, err := conn.Write(test.send); err != nil {
				t.Fatal(err)
			}
			if !test.ends {
				_ = conn.(*net.TCPConn).CloseWrite()
			}
			_ = conn.SetReadDeadline(time.Now().Add(patience))
			if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal("the connection is open")
			}
			got := n.Counters()
			got.BytesIn = 0
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The number of incoming connections is limited.
func TestTCPRefuses(t *testing.T) {
	n := startTCP(t, listenTCP(t), Config{Self: 2, Incarnation: 22, Peers: []Peer{{Process: 1, Addr: "127.0.0.1:1"}}, Receive: newMailbox().receive})
	for range 2 + extraConns {
		conn, err := net.Dial("tcp", n.Addr())
		if err != nil {
			t.Fatal(err)
		}
		closeLater(t, conn)
	}
	conn, err := net.Dial("tcp", n.Addr())
	if err != nil {
		t.Fatal(err)
	}
	closeLater(t, conn)
	_ = conn.SetReadDeadline(time.Now().Add(firstPacketTimeout / 2))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection above the limit is open: %v", err)
	}
	if c := n.Counters(); c.Refused != 1 {
		t.Errorf("counted %+v", c)
	}
}
