package fleasenet

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/secret"
)

var aKey = secret.New("0123456789abcdef")

// A delivery is a copy of a packet's content.
type delivery struct {
	Envelope flease.Envelope
	Messages []flease.Message
}

func (d *delivery) take(e *flease.Envelope, msgs []flease.Message, _ *Source) {
	d.Envelope, d.Messages = *e, nil
	for _, m := range msgs {
		m.Name = strings.Clone(m.Name)
		d.Messages = append(d.Messages, m)
	}
}

// endpoints returns a packer of process 1 and a reader of process 2, which stores the last delivery in
// got.
func endpoints(t testing.TB, key secret.Text) (p *packer, r *reader, got *delivery) {
	t.Helper()
	got = new(delivery)
	one := &Config{Self: 1, Incarnation: 11, Key: key, Peers: []Peer{{Process: 1}, {Process: 2}, {Process: 3}}, Receive: got.take}
	two := &Config{Self: 2, Incarnation: 22, Key: key, Peers: one.Peers, Receive: got.take}
	if err := two.checkMembers(); err != nil {
		t.Fatal(err)
	}
	p, err := newPacker(one, new(counters))
	if err != nil {
		t.Fatal(err)
	}
	q, err := newPacker(two, new(counters))
	if err != nil {
		t.Fatal(err)
	}
	return p, &reader{inbox: newInbox(two, q, new(counters)), from: func() string { return "elsewhere" }}, got
}

// Encoding and decoding messages is lossless, in order and in packets within the limit, with and without encryption.
func TestPacketsRoundTrip(t *testing.T) {
	for _, key := range []secret.Text{{}, aKey} {
		t.Run(fmt.Sprintf("key %q", key), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkPackets(t, key) })
		})
	}
}

func checkPackets(t *rapid.T, key secret.Text) {
	limit := rapid.SampledFrom([]int{MinPacket, UsualPacket, MaxPacket}).Draw(t, "limit")
	e := drawEnvelope(t)
	msgs := rapid.SliceOfN(rapid.Custom(drawMessage), 0, 30).Draw(t, "messages")
	p, r, got := endpoints(failer{rapidT: t}, key)
	var all []flease.Message
	rest := msgs
	for first := true; first || len(rest) > 0; first = false {
		var packet []byte
		packet, rest = p.pack(nil, limit, 2, &e, rest)
		if len(packet) > limit {
			t.Fatalf("packet of %d bytes, the limit is %d", len(packet), limit)
		}
		if why := r.packet(packet); why != delivered {
			t.Fatalf("dropped: %v", why)
		}
		if got.Envelope != e {
			t.Fatal(cmp.Diff(e, got.Envelope))
		}
		all = append(all, got.Messages...)
	}
	if diff := cmp.Diff(append([]flease.Message(nil), msgs...), all); diff != "" {
		t.Fatal(diff)
	}
}

// failer is a testing.TB for a property.
type failer struct {
	testing.TB
	rapidT *rapid.T
}

func (f failer) Helper()           {}
func (f failer) Fatal(args ...any) { f.rapidT.Fatal(args...) }

// The sizes of typical messages, without their names.
func TestSizes(t *testing.T) {
	now := someSent
	e := &flease.Envelope{From: 1, Incarnation: 11, To: 22, Sent: now}
	at := flease.Ballot{Interval: 180_000_000, Round: 1, Process: 1}
	mine := flease.Value{Owner: 1, Incarnation: 11, Serial: 1000, Fence: uint64(now / millisecond), Until: now.Add(10 * time.Second), Left: 10 * time.Second}
	other := mine
	other.Owner, other.Incarnation = 3, 33
	for _, test := range []struct {
		name string
		m    flease.Message
		want int
	}{
		{"read", flease.Message{Kind: flease.KindRead, From: 9, Ballot: at}, 6},
		{"write", flease.Message{Kind: flease.KindWrite, To: 9, From: 9, Ballot: at, Value: mine}, 6 + 2 + 1 + 4 + 5 + 5},
		{"accept", flease.Message{Kind: flease.KindAccept, To: 9, Ballot: at, Value: flease.Value{Serial: 1000}}, 5 + 2 + 1},
		{"promise of nothing", flease.Message{Kind: flease.KindPromise, To: 9, From: 9, Ballot: at}, 6},
		{"promise of a released value", flease.Message{Kind: flease.KindPromise, To: 9, From: 9, Ballot: at, Fence: mine.Fence}, 6 + 2 + 5},
		{"promise of another's value", flease.Message{Kind: flease.KindPromise, To: 9, From: 9, Ballot: at, Written: at, Value: other, Fence: other.Fence}, 6 + 1 + 2 + 4 + 8 + 1 + 4 + 5 + 5},
		{"reject", flease.Message{Kind: flease.KindReject, To: 9, Ballot: at, Written: flease.Ballot{Interval: at.Interval, Round: 2, Process: 3}}, 5 + 4 + 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, _, _ := endpoints(t, secret.Text{})
			one, _ := p.pack(nil, UsualPacket, 2, e, []flease.Message{test.m})
			many, _ := p.pack(nil, UsualPacket, 2, e, []flease.Message{test.m, test.m})
			if got := len(many) - len(one); got != test.want {
				t.Errorf("takes %d bytes, want %d", got, test.want)
			}
		})
	}
}

// A message with too long a name is skipped, and the others are sent.
func TestLongNamesAreSkipped(t *testing.T) {
	p, r, got := endpoints(t, secret.Text{})
	e := &flease.Envelope{From: 1, Incarnation: 11}
	msgs := []flease.Message{
		{Kind: flease.KindRead, Name: "a"},
		{Kind: flease.KindRead, Name: strings.Repeat("x", flease.MaxName+1)},
		{Kind: flease.KindRead, Name: "b"},
	}
	packet, rest := p.pack(nil, MinPacket, 2, e, msgs)
	if why := r.packet(packet); why != delivered || len(rest) != 0 {
		t.Fatalf("outcome %v, %d messages left", why, len(rest))
	}
	if diff := cmp.Diff([]flease.Message{msgs[0], msgs[2]}, got.Messages); diff != "" {
		t.Error(diff)
	}
	if c := p.counters.Counters(); c.Oversized != 1 || c.MessagesOut != 2 {
		t.Errorf("counted %+v", c)
	}
}

// TestLargestMessage: one that has everything in full fits into the minPacketSize
// packet, so that a packet always makes progress.
func TestLargestMessage(t *testing.T) {
	const huge = 1<<64 - 1
	b := flease.Ballot{Interval: huge, Round: 1<<32 - 1, Process: 1<<32 - 1}
	m := flease.Message{
		Kind: flease.KindRead, To: 1 << 31, From: 1 << 31, Name: strings.Repeat("x", flease.MaxName), Ballot: b,
		Written: flease.Ballot{Interval: 1 << 62, Round: b.Round, Process: b.Process},
		Value:   flease.Value{Owner: b.Process, Incarnation: huge, Serial: 1 << 63, Fence: 1 << 63, Until: -1 << 62, Left: 1 << 62, Released: true},
		Fence:   1 << 62,
	}
	requireFull(t, reflect.ValueOf(m))
	for _, key := range []secret.Text{{}, aKey} {
		p, r, got := endpoints(t, key)
		e := &flease.Envelope{From: 1, Incarnation: 11, Sent: someSent}
		packet, rest := p.pack(nil, MinPacket, 2, e, []flease.Message{m})
		if len(rest) != 0 || r.packet(packet) != delivered {
			t.Fatalf("%d messages left of one", len(rest))
		}
		if diff := cmp.Diff([]flease.Message{m}, got.Messages); diff != "" {
			t.Error(diff)
		}
		if size := len(packet) - headerSize - envelopeSize - p.seal.trailer(); size != largestMessage {
			t.Errorf("takes %d bytes, largestMessage is %d", size, largestMessage)
		}
	}
}

// requireFull checks that all fields of a message are set, so that a new field cannot be missed.
func requireFull(t *testing.T, v reflect.Value) {
	t.Helper()
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case f.Kind() == reflect.Struct:
			requireFull(t, f)
		case f.IsZero():
			t.Errorf("%s of %s is zero", v.Type().Field(i).Name, v.Type())
		}
	}
}
