package fleasenet

import (
	"encoding/hex"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/secret"
)

// Encoded packets are stable, because processes of different versions communicate. Each line of the file is
// the key, or a dash, and a packet from process 1, incarnation 11, to process 2.
func TestVectors(t *testing.T) {
	at := flease.Ballot{Interval: 180_000_000, Round: 300, Process: 1}
	value := flease.Value{
		Owner: 3, Incarnation: 1 << 60, Serial: 1000, Fence: 1_800_000_000_000,
		Until: someSent.Add(10 * time.Second), Left: 9 * time.Second,
	}
	msgs := []flease.Message{
		{Kind: flease.KindRead, From: 5, Name: "a", Ballot: at},
		{Kind: flease.KindWrite, To: 1000, From: 6, Ballot: at, Value: flease.Value{Owner: 1, Incarnation: 11, Serial: 1, Released: true}},
		{Kind: flease.KindPromise, To: 1001, From: 1 << 31, Ballot: at, Written: flease.Ballot{Interval: 179_999_999, Process: 2}, Value: value, Fence: value.Fence + 1},
		{Kind: flease.KindAccept, To: 999, Ballot: at, Value: flease.Value{Serial: 1001}},
		{Kind: flease.KindReject, To: 1 << 31, Ballot: flease.Ballot{Interval: 1, Process: 9}, Written: at},
	}
	e := &flease.Envelope{From: 1, Incarnation: 11, Waiting: true, To: 22, Sent: someSent, Echo: someSent - 1}
	var got strings.Builder
	for _, key := range []secret.Text{{}, aKey} {
		p, _, _ := endpoints(t, key)
		p.config.Fingerprint = 0x0102030405060708
		packet, _ := p.pack(nil, UsualPacket, 2, e, msgs)
		name := key.Reveal()
		if name == "" {
			name = "-"
		}
		got.WriteString(name + " " + hex.EncodeToString(packet) + "\n")
	}
	want, err := os.ReadFile("testdata/packets.txt")
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got.String() {
		t.Errorf("packets changed: increment the version, or fix the code. They are now:\n%s", got.String())
	}
}
