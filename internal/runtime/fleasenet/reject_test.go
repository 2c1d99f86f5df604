package fleasenet

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/secret"
)

// resum fixes the checksum of a changed packet.
func resum(packet []byte) []byte {
	body := packet[:len(packet)-checksumSize]
	return binary.LittleEndian.AppendUint64(slices.Clone(body), xxhash.Sum64(body))
}

// Invalid packets are dropped and counted by reason.
func TestInvalidPackets(t *testing.T) {
	const firstMessage = headerSize + envelopeSize
	change := func(at int, to byte) func([]byte) []byte {
		return func(p []byte) []byte { p[at] = to; return p }
	}
	changeAndSum := func(at int, to byte) func([]byte) []byte {
		return func(p []byte) []byte { p[at] = to; return resum(p) }
	}
	for _, test := range []struct {
		name   string
		key    secret.Text // of the sender and the receiver
		change func([]byte) []byte
		want   Counters
	}{
		{"empty", secret.Text{}, func([]byte) []byte { return nil }, Counters{Malformed: 1}},
		{"no packet", secret.Text{}, change(0, 'X'), Counters{Malformed: 1}},
		{"another version", aKey, change(2, version+1), Counters{Malformed: 1}},
		{"an undefined flag", aKey, change(3, 8), Counters{Malformed: 1}},
		{"too short", secret.Text{}, func(p []byte) []byte { return p[:minPacketSize-1] }, Counters{Malformed: 1}},
		{"too short for a tag", aKey, func(p []byte) []byte { return p[:minPacketSize] }, Counters{Malformed: 1}},
		{"too large", secret.Text{}, func(p []byte) []byte { return append(p, make([]byte, MaxPacket)...) }, Counters{Oversized: 1}},
		{"from an unknown process", aKey, change(4, 99), Counters{Foreign: 1}},
		{"from the receiver itself", aKey, change(4, 2), Counters{Unauthentic: 1}},
		{"to another process", aKey, change(8, 3), Counters{Foreign: 1}},
		{"incarnation 0", aKey, change(12, 0), Counters{Foreign: 1}},
		{"another sender", aKey, change(4, 3), Counters{Unauthentic: 1}},
		{"another incarnation", aKey, change(12, 1), Counters{Unauthentic: 1}},
		{"another number", aKey, change(20, 7), Counters{Unauthentic: 1}},
		{"another envelope", aKey, func(p []byte) []byte { p[headerSize] ^= 1; return p }, Counters{Unauthentic: 1}},
		{"another tag", aKey, func(p []byte) []byte { p[len(p)-1] ^= 1; return p }, Counters{Unauthentic: 1}},
		{"truncated, encrypted", aKey, func(p []byte) []byte { return p[:len(p)-1] }, Counters{Unauthentic: 1}},
		{"flag for encryption removed", aKey, func(p []byte) []byte { p[3] = unsealed; return resum(p) }, Counters{Unauthentic: 1}},
		{"flag for encryption added", secret.Text{}, func(p []byte) []byte { p[3] = sealed; return resum(p) }, Counters{Unauthentic: 1}},
		{"another checksum", secret.Text{}, func(p []byte) []byte { p[len(p)-1] ^= 1; return p }, Counters{Unauthentic: 1}},
		{"packet 0", secret.Text{}, changeAndSum(20, 0), Counters{Replayed: 1}},
		{"no kind", secret.Text{}, changeAndSum(firstMessage, 0), Counters{Malformed: 1}},
		{"an unknown kind", secret.Text{}, changeAndSum(firstMessage, 0), Counters{Malformed: 1}},
		{"a form without its field", secret.Text{}, changeAndSum(firstMessage+1, 1<<(headWrittenBy-8)), Counters{Malformed: 1}},
		{"a name beyond the end", secret.Text{}, changeAndSum(firstMessage+2, 200), Counters{Malformed: 1}},
		{"a head without its fields", secret.Text{}, func(p []byte) []byte {
			end := firstMessage
			p = append(p[:end], byte(flease.KindRead)|headInterval, 0, 0)
			return resum(append(p, make([]byte, checksumSize)...))
		}, Counters{Malformed: 1}},
		{"half a head", secret.Text{}, func(p []byte) []byte {
			return resum(append(p[:firstMessage], append([]byte{1}, make([]byte, checksumSize)...)...))
		}, Counters{Malformed: 1}},
		{"a value of reserved bits", secret.Text{}, func(p []byte) []byte {
			p = append(p[:firstMessage], byte(flease.KindWrite), 0x80, 0, 0, 0x80)
			return resum(append(p, make([]byte, checksumSize)...))
		}, Counters{Malformed: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, r, _ := endpoints(t, test.key)
			e := &flease.Envelope{From: 1, Incarnation: 11, To: 22, Sent: someSent}
			packet, _ := p.pack(nil, UsualPacket, 2, e, []flease.Message{{Kind: flease.KindRead, Name: "name"}})
			good := slices.Clone(packet)
			r.packet(test.change(packet))
			if diff := cmp.Diff(test.want, r.counters.Counters()); diff != "" {
				t.Error(diff)
			}
			if why := r.packet(good); why != delivered && test.want.Malformed == 0 {
				t.Errorf("the original packet is dropped afterwards: %v", why)
			}
		})
	}
}

// A duplicate and a packet older than the window are dropped, in any order of arrival.
func TestReplays(t *testing.T) {
	for _, key := range []secret.Text{{}, aKey} {
		p, r, _ := endpoints(t, key)
		e := &flease.Envelope{From: 1, Incarnation: 11, Sent: someSent}
		var packets [][]byte
		for range windowSize + 1 {
			packet, _ := p.pack(nil, MinPacket, 2, e, nil)
			packets = append(packets, packet)
		}
		for _, i := range []int{5, 3, 3, 5, 4, windowSize, 1, 0, 3} {
			r.packet(bytes.Clone(packets[i]))
		}
		want := Counters{PacketsIn: 5, Replayed: 4, BytesIn: 5 * uint64(len(packets[0]))}
		if diff := cmp.Diff(want, r.counters.Counters()); diff != "" {
			t.Errorf("key %q: %s", key, diff)
		}
	}
}

// The last incarnations of a process have replay windows of their own. A packet that is not authentic
// evicts none.
func TestIncarnationWindows(t *testing.T) {
	_, r, _ := endpoints(t, aKey)
	send := func(incarnation uint64, key secret.Text) outcome {
		t.Helper()
		c := &Config{Self: 1, Incarnation: incarnation, Key: key, Peers: []Peer{{Process: 2}}}
		p, err := newPacker(c, new(counters))
		if err != nil {
			t.Fatal(err)
		}
		packet, _ := p.pack(nil, MinPacket, 2, &flease.Envelope{From: 1, Incarnation: incarnation}, nil)
		return r.packet(packet)
	}
	for i := range uint64(maxIncarnations) {
		if why := send(100+i, aKey); why != delivered {
			t.Fatalf("incarnation %d: %v", 100+i, why)
		}
	}
	for i := range uint64(100) {
		if why := send(200+i, secret.New("another key, as long")); why != unauthentic {
			t.Fatalf("with another key: %v", why)
		}
	}
	for i := range uint64(maxIncarnations) {
		if why := send(100+i, aKey); why != replayed {
			t.Errorf("incarnation %d was evicted: %v", 100+i, why)
		}
	}
	if why := send(300, aKey); why != delivered {
		t.Errorf("a new incarnation: %v", why)
	}
	if n := len(r.senders[1].incarnations); n != maxIncarnations {
		t.Errorf("%d windows", n)
	}
	if why := send(103, aKey); why != replayed {
		t.Errorf("the second newest was evicted: %v", why)
	}
	if why := send(100, aKey); why != delivered {
		t.Errorf("the oldest was not evicted: %v", why)
	}
}

// Replays of earlier incarnations never evict the newest one.
func TestNewestIncarnationIsKept(t *testing.T) {
	_, r, _ := endpoints(t, aKey)
	send := func(incarnation uint64, sent flease.Wall) outcome {
		t.Helper()
		p, err := newPacker(&Config{Self: 1, Incarnation: incarnation, Key: aKey, Peers: []Peer{{Process: 2}}}, new(counters))
		if err != nil {
			t.Fatal(err)
		}
		packet, _ := p.pack(nil, MinPacket, 2, &flease.Envelope{From: 1, Incarnation: incarnation, Sent: sent}, nil)
		return r.packet(packet)
	}
	for i := range flease.Wall(10) {
		send(uint64(100+i), someSent+i)
	}
	for i := range flease.Wall(9) { // most of them were evicted
		send(uint64(100+i), someSent+i)
		if why := send(109, someSent+9); why != replayed {
			t.Fatalf("after %d replays the newest incarnation can be replayed: %v", i+1, why)
		}
	}
	// A newer incarnation with a clock that was set back has a lower Sent.
	for range maxIncarnations {
		if why := send(200, someSent-1); why != delivered && why != replayed {
			t.Errorf("a clock that was set back: %v", why)
		}
	}
	if n := len(r.senders[1].incarnations); n != maxIncarnations {
		t.Errorf("%d windows", n)
	}
}

// The same packet to two peers, or twice to one, has different nonces.
func TestNoncesDiffer(t *testing.T) {
	p, _, _ := endpoints(t, aKey)
	seen := make(map[nonce]bool)
	for range 3 {
		for _, to := range []flease.Process{2, 3} {
			packet, _ := p.pack(nil, MinPacket, to, &flease.Envelope{From: 1, Incarnation: 11}, nil)
			var h header
			if !h.parse(packet) || seen[p.nonce] {
				t.Fatalf("nonce %x twice, or no header", p.nonce)
			}
			seen[p.nonce] = true
		}
	}
}

// A new incarnation at run time has another key, so that the same nonces are safe.
func TestIncarnationChangesKey(t *testing.T) {
	p, r, got := endpoints(t, aKey)
	first, _ := p.pack(nil, MinPacket, 2, &flease.Envelope{From: 1, Incarnation: 11}, nil)
	before := p.nonce
	second, _ := p.pack(nil, MinPacket, 2, &flease.Envelope{From: 1, Incarnation: 12}, nil)
	if p.nonce != before || slices.Equal(first[headerSize:], second[headerSize:]) {
		t.Errorf("nonces %x and %x: want the same one under another key", before, p.nonce)
	}
	for i, packet := range [][]byte{first, second} {
		if why := r.packet(packet); why != delivered || got.Envelope.Incarnation != uint64(11+i) {
			t.Errorf("packet %d: %v, of incarnation %d", i, why, got.Envelope.Incarnation)
		}
	}
}

func TestForeignEnvelopePanics(t *testing.T) {
	p, _, _ := endpoints(t, secret.Text{})
	for _, e := range []flease.Envelope{{From: 2, Incarnation: 11}, {From: 3, Incarnation: 11}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("envelope %+v was sent", e)
				}
			}()
			p.pack(nil, MinPacket, 2, &e, nil)
		}()
	}
}

// Packets and messages cost no allocation.
func TestNoAllocations(t *testing.T) {
	for _, key := range []secret.Text{{}, aKey} {
		p, r, _ := endpoints(t, key)
		r.config.Receive = func(*flease.Envelope, []flease.Message, *Source) {}
		e := &flease.Envelope{From: 1, Incarnation: 11, To: 22, Sent: someSent}
		msgs := usual(flease.KindWrite, 20)
		buffer := make([]byte, 0, 4096)
		if n := testing.AllocsPerRun(100, func() {
			packet, _ := p.pack(buffer, UsualPacket, 2, e, msgs)
			r.packet(packet)
		}); n != 0 {
			t.Errorf("key %q: %v allocations", key, n)
		}
	}
}
