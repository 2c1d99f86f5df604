package fleasenet

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// join adds a process to a network of two.
func join(t *testing.T, m *Memory, self flease.Process, box mailbox) Net {
	t.Helper()
	n, err := m.Join(Config{
		Self: self, Incarnation: 11 * uint64(self), Key: aKey, Peers: []Peer{{Process: 1}, {Process: 2}}, Receive: box.receive,
	})
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

// greet sends greetings with numbers in Sent.
func greet(n Net, from, to flease.Process, times int) {
	for i := range times {
		n.Send(to, &flease.Envelope{From: from, Incarnation: 11 * uint64(from), Sent: flease.Wall(i)}, nil)
	}
	n.Flush()
}

func TestMemoryCarriesMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, one, two := new(Memory), newMailbox(), newMailbox()
		n := join(t, m, 1, one)
		join(t, m, 2, two)
		there := usual(flease.KindWrite, 3000)
		n.Send(2, &flease.Envelope{From: 1, Incarnation: 11, To: 22, Sent: someSent}, there)
		n.Send(3, &flease.Envelope{From: 1, Incarnation: 11}, nil)
		synctest.Wait()
		if len(two) != 0 {
			t.Error("received before Flush")
		}
		n.Flush()
		if diff := cmp.Diff(there, two.messages(t, len(there))); diff != "" {
			t.Error(diff)
		}
		if c := n.Counters(); c.MessagesOut != 3000 || c.Foreign != 1 {
			t.Errorf("counted %+v", c)
		}
	})
}

// Packets are delayed and reordered as configured.
func TestMemoryLatency(t *testing.T) {
	const packets = 1000
	for _, test := range []struct {
		name    string
		latency Latency
		ordered bool
	}{
		{"fine", Latency{}, true},
		{"delay", Latency{Delay: time.Second}, true},
		{"jitter", Latency{Delay: time.Second, Jitter: time.Second}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, two := new(Memory), newMailbox()
				n := join(t, m, 1, newMailbox())
				join(t, m, 2, two)
				m.SetLatency(test.latency)
				start := time.Now()
				greet(n, 1, 2, packets)
				for synctest.Wait(); time.Since(start) < 3*time.Second; synctest.Wait() {
					if early := time.Since(start) < test.latency.Delay; early && len(two) > 0 {
						t.Fatalf("%d packets after %v", len(two), time.Since(start))
					}
					time.Sleep(100 * time.Millisecond)
				}
				if n := len(two); n != packets {
					t.Errorf("%d packets, want %d", n, packets)
				}
				ordered := true
				for last := flease.Wall(-1); len(two) > 0; {
					e := (<-two).Envelope
					ordered = ordered && e.Sent > last
					last = e.Sent
				}
				if ordered != test.ordered {
					t.Errorf("in order: %t", ordered)
				}
			})
		})
	}
}

// Cut and Mend affect one direction.
func TestMemoryCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, one, two := new(Memory), newMailbox(), newMailbox()
		a, b := join(t, m, 1, one), join(t, m, 2, two)
		exchange := func() (int, int) {
			greet(a, 1, 2, 1)
			greet(b, 2, 1, 1)
			synctest.Wait()
			return len(one), len(two)
		}
		m.Cut(1, 2)
		if at1, at2 := exchange(); at1 != 1 || at2 != 0 {
			t.Errorf("cut from 1 to 2: %d packets at 1, %d at 2", at1, at2)
		}
		m.Mend(1, 2)
		if at1, at2 := exchange(); at1 != 2 || at2 != 1 {
			t.Errorf("mended: %d packets at 1, %d at 2", at1, at2)
		}
	})
}

// The number of packets in flight is limited.
func TestMemoryFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, two := new(Memory), newMailbox()
		n, far := join(t, m, 1, newMailbox()), join(t, m, 2, two)
		m.SetLatency(Latency{Delay: time.Second})
		greet(n, 1, 2, maxInFlight+5)
		if c := far.Counters(); c.Full != 5 {
			t.Errorf("counted %+v", c)
		}
	})
}

// A process can join again after Close only.
func TestMemoryRejoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(Memory)
		n := join(t, m, 1, newMailbox())
		c := Config{Self: 1, Incarnation: 12, Peers: []Peer{{Process: 2}}, Receive: newMailbox().receive}
		if _, err := m.Join(c); !errors.Is(err, leasehold.ErrExists) {
			t.Errorf("joined twice: %v", err)
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
		join(t, m, 1, newMailbox())
	})
}
