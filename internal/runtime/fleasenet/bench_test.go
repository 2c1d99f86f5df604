package fleasenet

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// usual returns n messages of a kind with typical fields.
func usual(kind flease.Kind, n int) []flease.Message {
	msgs := make([]flease.Message, n)
	for i := range msgs {
		m := flease.Message{Kind: kind, To: flease.Ref(i + 1), From: flease.Ref(i + 1)}
		m.Ballot = flease.Ballot{Interval: 180_000_000, Round: 1, Process: 1}
		switch kind {
		case flease.KindRead:
			m.To, m.Name = 0, fmt.Sprintf("resource/%07d", i)
		case flease.KindWrite:
			m.Value = flease.Value{
				Owner: 1, Incarnation: 11, Serial: 1000 + uint64(i), Fence: uint64(someSent/millisecond) - 100,
				Until: someSent.Add(10 * time.Second), Left: 10 * time.Second,
			}
		case flease.KindAccept:
			m.Value.Serial = 1000 + uint64(i)
		default:
		}
		msgs[i] = m
	}
	return msgs
}

var usualKinds = []struct {
	name string
	kind flease.Kind
}{{"read", flease.KindRead}, {"write", flease.KindWrite}, {"accept", flease.KindAccept}}

// BenchmarkEncode packs and seals 1,000 messages, 1400 bytes to a packet.
func BenchmarkEncode(b *testing.B) {
	e := &flease.Envelope{From: 1, Incarnation: 11, To: 22, Sent: someSent}
	for _, k := range usualKinds {
		b.Run(k.name, func(b *testing.B) {
			p, _, _ := endpoints(b, aKey)
			msgs := usual(k.kind, 1000)
			buffer := make([]byte, 0, 2*UsualPacket)
			b.ReportAllocs()
			for b.Loop() {
				for rest := msgs; len(rest) > 0; {
					_, rest = p.pack(buffer, UsualPacket, 2, e, rest)
				}
			}
			perMessage(b, len(msgs))
		})
	}
}

// BenchmarkDecode decrypts and decodes a packet of 1400 bytes. It clears the replay window each
// time.
func BenchmarkDecode(b *testing.B) {
	e := &flease.Envelope{From: 1, Incarnation: 11, To: 22, Sent: someSent}
	for _, k := range usualKinds {
		b.Run(k.name, func(b *testing.B) {
			p, r, _ := endpoints(b, aKey)
			r.config.Receive = func(*flease.Envelope, []flease.Message, *Source) {}
			packet, rest := p.pack(nil, UsualPacket, 2, e, usual(k.kind, 1000))
			n := 1000 - len(rest)
			scratch := make([]byte, len(packet))
			r.packet(append(scratch[:0], packet...))
			known := r.senders[1].incarnations[0]
			b.ReportAllocs()
			for b.Loop() {
				known.window = window{}
				if why := r.packet(append(scratch[:0], packet...)); why != delivered {
					b.Fatal(why)
				}
			}
			perMessage(b, n)
		})
	}
}

// perMessage divides what a benchmark reports.
func perMessage(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/message")
}

// BenchmarkUDP sends 512 writes from one process to another and their accepts back, encrypted, over the
// loopback, with a bounded number in flight. It counts one message per round trip.
func BenchmarkUDP(b *testing.B) {
	for _, size := range []int{UsualPacket, 8 << 10, MaxPacket} {
		b.Run(fmt.Sprint(size), func(b *testing.B) { benchmarkUDP(b, size) })
	}
}

func benchmarkUDP(b *testing.B, size int) {
	const burst = 512
	back := make(chan int, 1024)
	var two Net
	accepts := usual(flease.KindAccept, burst)
	nets := openUDP(b, aKey, size,
		func(_ *flease.Envelope, msgs []flease.Message, _ *Source) { back <- len(msgs) },
		func(_ *flease.Envelope, msgs []flease.Message, _ *Source) {
			two.Send(1, &flease.Envelope{From: 2, Incarnation: 22, To: 11, Sent: someSent}, accepts[:len(msgs)])
			two.Flush()
		})
	one := nets[0]
	two = nets[1]
	e := &flease.Envelope{From: 1, Incarnation: 11, To: 22, Sent: someSent}
	msgs := usual(flease.KindWrite, burst)
	lost := time.NewTimer(time.Minute)
	inFlight := 0
	for b.Loop() {
		one.Send(2, e, msgs)
		one.Flush()
		for inFlight += burst; inFlight > 4*burst; {
			select {
			case n := <-back:
				inFlight -= n
			case <-lost.C:
				b.Fatalf("packets were lost: %+v, %+v", one.Counters(), two.Counters())
			}
		}
	}
	perMessage(b, burst)
	b.ReportMetric(float64(one.Counters().PacketsOut+two.Counters().PacketsOut)/b.Elapsed().Seconds(), "packets/s")
}
