package fleasenet

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/internal/testkit/logbook"
	"github.com/leasehold-dev/leasehold/secret"
)

// A process with a duplicate id sends to the configured address of that id, and receives the replies.
func TestDuplicateProcess(t *testing.T) {
	answer := flease.Envelope{From: 1, Incarnation: 11, GiveWay: true, To: 12, Sent: someSent, Echo: 7}
	hello := flease.Envelope{From: 1, Incarnation: 12, Waiting: true, Sent: 7}
	for name, open := range map[string]func(t *testing.T, one, twin Config) (Net, Net){
		"UDP": func(t *testing.T, one, twin Config) (Net, Net) {
			var nets [2]Net
			for i, c := range []Config{one, twin} {
				conn, err := listenUDP(c.Listen)
				if err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					twin.Peers = []Peer{{Process: 1, Addr: conn.LocalAddr().String()}}
				}
				c.Peers = twin.Peers
				nets[i] = startUDP(t, conn, c)
			}
			return nets[0], nets[1]
		},
		"TCP": func(t *testing.T, one, twin Config) (Net, Net) {
			l := listenTCP(t)
			one.Peers = []Peer{{Process: 1, Addr: l.Addr().String()}}
			twin.Peers = one.Peers
			return startTCP(t, l, one), startTCP(t, listenTCP(t), twin)
		},
	} {
		t.Run(name, func(t *testing.T) {
			here, there := newMailbox(), newMailbox()
			one := Config{Self: 1, Incarnation: 11, Key: aKey, Listen: "127.0.0.1:0"}
			one.Receive = func(e *flease.Envelope, msgs []flease.Message, from *Source) {
				here.receive(e, msgs, from)
				from.Reply(&answer)
				if !strings.HasPrefix(from.Addr(), "127.0.0.1:") {
					t.Errorf("source address %s", from.Addr())
				}
			}
			first, second := open(t, one, Config{Self: 1, Incarnation: 12, Key: aKey, Listen: "127.0.0.1:0", Receive: there.receive})
			second.Send(1, &hello, nil)
			second.Flush()
			if diff := cmp.Diff(delivery{Envelope: hello}, here.next(t)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(delivery{Envelope: answer}, there.next(t)); diff != "" {
				t.Error(diff)
			}
			first.Send(1, &answer, nil) // its own address
			first.Flush()
			if c := first.Counters(); c.Foreign != 0 || c.PacketsOut != 1 {
				t.Errorf("to itself: counted %+v", c)
			}
		})
	}
}

// Packets of a peer with another key are logged, with a rate limit; those of unknown processes are not.
func TestWarningsAreThrottled(t *testing.T) {
	var log logbook.Book
	peers := []Peer{{Process: 1, Name: "db-1"}, {Process: 2}}
	two := &Config{Self: 2, Incarnation: 22, Key: aKey, Peers: peers, Logger: log.Logger(), Receive: newMailbox().receive}
	if err := two.checkMembers(); err != nil {
		t.Fatal(err)
	}
	packer, err := newPacker(two, new(counters))
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{inbox: newInbox(two, packer, new(counters)), from: func() string { return "10.0.0.1:7" }}
	for _, id := range []flease.Process{1, 1, 1, 9} {
		packet, _ := guest(t, id, secret.New("another key, as long")).pack(nil, UsualPacket, 2, &flease.Envelope{From: id, Incarnation: 99}, nil)
		if why := r.packet(packet); why != unauthentic {
			t.Fatal(why)
		}
	}
	text := log.String()
	if strings.Count(text, "\n") != 1 || !strings.Contains(text, "compare the keys\" of=db-1 from=10.0.0.1:7") {
		t.Errorf("log: %s", text)
	}
}

// A peer that closes every connection causes exponential backoff and one log line.
func TestTCPBacksOff(t *testing.T) {
	var log logbook.Book
	closing := listenTCP(t)
	closeLater(t, closing)
	accepted := make(chan time.Time, 100)
	go func() {
		for {
			conn, err := closing.Accept()
			if err != nil {
				return
			}
			accepted <- time.Now()
			_ = conn.Close()
		}
	}()
	one := startTCP(t, listenTCP(t), Config{
		Self: 1, Incarnation: 11, Logger: log.Logger(), Receive: newMailbox().receive,
		Peers: []Peer{{Process: 2, Addr: closing.Addr().String()}},
	})
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	var times []time.Time
	for deadline := time.After(patience); len(times) < 5; {
		one.Send(2, &flease.Envelope{From: 1, Incarnation: 11}, nil)
		one.Flush()
		select {
		case at := <-accepted:
			times = append(times, at)
		case <-again.C:
		case <-deadline:
			t.Fatalf("%d connections", len(times))
		}
	}
	if took := times[4].Sub(times[0]); took < (minBackoff+2*minBackoff+4*minBackoff+8*minBackoff)/2 {
		t.Errorf("five connections in %v", took)
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "compare keys") && !strings.Contains(text, "connection to a member lost") {
		t.Errorf("log: %s", text)
	}
}
