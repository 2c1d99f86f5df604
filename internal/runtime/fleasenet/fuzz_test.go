package fleasenet

import (
	"encoding/binary"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/secret"
)

// FuzzPacket decodes arbitrary packets with a valid checksum: each is dropped, or its content survives encoding and
// decoding.
func FuzzPacket(f *testing.F) {
	p, _, _ := endpoints(f, secret.Text{})
	e := &flease.Envelope{From: 1, Incarnation: 11, To: 22, Sent: someSent}
	for _, k := range usualKinds {
		packet, _ := p.pack(nil, UsualPacket, 2, e, usual(k.kind, 3))
		f.Add(packet)
	}
	f.Fuzz(func(t *testing.T, packet []byte) {
		p, r, got := endpoints(t, secret.Text{})
		if len(packet) >= checksumSize {
			body := packet[:len(packet)-checksumSize]
			packet = binary.LittleEndian.AppendUint64(append([]byte(nil), body...), xxhash.Sum64(body))
		}
		if r.packet(packet) != delivered || got.Envelope.From != 1 || got.Envelope.Incarnation != 11 {
			return
		}
		first := *got
		var again []flease.Message
		*p.numbers[2] = 1 << 40 // above the number of the packet
		for rest, once := first.Messages, true; once || len(rest) > 0; once = false {
			var next []byte
			next, rest = p.pack(nil, MaxPacket, 2, &first.Envelope, rest)
			r.senders[1].incarnations = nil
			if why := r.packet(next); why != delivered {
				t.Fatalf("decoding again: %v", why)
			}
			again = append(again, got.Messages...)
		}
		if diff := cmp.Diff(first.Messages, again); diff != "" {
			t.Fatal(diff)
		}
	})
}
