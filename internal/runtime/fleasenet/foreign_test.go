package fleasenet

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/secret"
)

// guest returns a packer of a process of another group that sends to process 2.
func guest(t *testing.T, id flease.Process, key secret.Text) *packer {
	t.Helper()
	p, err := newPacker(&Config{Self: id, Incarnation: 99, Key: key, Fingerprint: 5, Peers: []Peer{{Process: 2}}}, new(counters))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Packets with another fingerprint go to Strange, without their messages, and Reply reaches their sender,
// whether it is a peer or not.
func TestOtherFingerprint(t *testing.T) {
	for _, key := range []secret.Text{{}, aKey} {
		for _, id := range []flease.Process{1, 7} {
			_, r, got := endpoints(t, key)
			var received flease.Envelope
			r.config.Strange = func(e *flease.Envelope, fingerprint uint64, from *Source) {
				if fingerprint != 5 {
					t.Errorf("fingerprint %d", fingerprint)
				}
				received = *e
				from.Reply(&flease.Envelope{From: 2, Incarnation: 22, To: e.Incarnation, Waiting: true})
			}
			var replies [][]byte
			r.back = func(to flease.Process, packet []byte) {
				if to != id {
					t.Errorf("reply to %d", to)
				}
				replies = append(replies, packet)
			}
			p := guest(t, id, key)
			e := &flease.Envelope{From: id, Incarnation: 99, Waiting: true, To: 1, Sent: 2, Echo: 3}
			for range 2 {
				packet, _ := p.pack(nil, UsualPacket, 2, e, usual(flease.KindWrite, 3))
				if why := r.packet(packet); why != strange {
					t.Fatalf("outcome %v", why)
				}
			}
			if diff := cmp.Diff(*e, received); diff != "" {
				t.Error(diff)
			}
			if got.Messages != nil || r.counters.Counters().Strange != 2 {
				t.Errorf("its messages are %v; counted %+v", got.Messages, r.counters.Counters())
			}
			numbers := make(map[uint64]bool)
			for _, a := range replies {
				var h header
				if !h.parse(a) || h.fingerprint != 0 || !h.waiting || h.from != 2 || h.to != id {
					t.Errorf("reply %+v", h)
				}
				numbers[h.number] = true
			}
			if len(numbers) != 2 {
				t.Errorf("numbers of replies: %v", numbers)
			}
		}
	}
}

// Only authentic packets add senders, up to MaxPeers.
func TestStrangersAreBounded(t *testing.T) {
	_, r, _ := endpoints(t, aKey)
	r.config.Strange = func(*flease.Envelope, uint64, *Source) { t.Error("the packet was accepted") }
	packet, _ := guest(t, 7, secret.New("another key, as long")).pack(nil, UsualPacket, 2, &flease.Envelope{From: 7, Incarnation: 99}, nil)
	if why := r.packet(packet); why != unauthentic {
		t.Error(why)
	}
	if n := len(r.strangers.senders); n != 0 {
		t.Errorf("%d strangers", n)
	}
	r.config.Strange = func(*flease.Envelope, uint64, *Source) {}
	for i := range flease.Process(MaxPeers + 3) {
		id := 7 + i
		packet, _ := guest(t, id, aKey).pack(nil, UsualPacket, 2, &flease.Envelope{From: id, Incarnation: 99}, nil)
		r.packet(packet)
	}
	if n := len(r.strangers.senders); n != MaxPeers || r.counters.Counters().Foreign != 3 {
		t.Errorf("%d strangers; counted %+v", n, r.counters.Counters())
	}
	again, _ := guest(t, 7, aKey).pack(nil, UsualPacket, 2, &flease.Envelope{From: 7, Incarnation: 99}, nil)
	if why := r.packet(again); why != replayed {
		t.Errorf("outcome of a replay: %v", why)
	}
}
