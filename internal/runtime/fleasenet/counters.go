package fleasenet

import "sync/atomic"

// Counters count packets, messages and bytes since the start of a network. Losses in the operating system or the
// network are not visible.
type Counters struct {
	PacketsIn, MessagesIn, BytesIn    uint64 // accepted
	PacketsOut, MessagesOut, BytesOut uint64 // packed; some may be Full or Failed later

	// Received packets that were dropped.
	Malformed   uint64 // not a packet, of another version, or truncated
	Oversized   uint64 // larger than MaxPacket; also sent messages with too long a name
	Foreign     uint64 // from or for another process; also sent packets to a process without address
	Unauthentic uint64 // of another key, or modified
	Replayed    uint64 // duplicate, or older than the replay window
	Strange     uint64 // from a process with another fingerprint
	// Packets that were dropped when sent.
	Full   uint64 // queue or socket buffer full
	Failed uint64 // unresolved address, system error or failed connection
	// Refused counts rejected incoming connections above the limit.
	Refused uint64
}

// An outcome is the result of a received or sent packet.
type outcome uint8

const (
	delivered outcome = iota
	malformed
	oversized
	foreign
	unauthentic
	replayed
	strange
	full
	failed
	outcomes
)

// counters has the values of Counters. It is safe for concurrent use.
type counters struct {
	in, messagesIn, bytesIn    atomic.Uint64
	out, messagesOut, bytesOut atomic.Uint64
	dropped                    [outcomes]atomic.Uint64
	refused                    atomic.Uint64
}

func (t *counters) drop(why outcome, packets int) {
	if packets > 0 {
		t.dropped[why].Add(uint64(packets))
	}
}

func (t *counters) received(bytes, messages int) {
	t.in.Add(1)
	t.messagesIn.Add(uint64(messages))
	t.bytesIn.Add(uint64(bytes))
}

func (t *counters) sent(bytes, messages int) {
	t.out.Add(1)
	t.messagesOut.Add(uint64(messages))
	t.bytesOut.Add(uint64(bytes))
}

// Counters returns the current values.
func (t *counters) Counters() Counters {
	return Counters{
		PacketsIn: t.in.Load(), MessagesIn: t.messagesIn.Load(), BytesIn: t.bytesIn.Load(),
		PacketsOut: t.out.Load(), MessagesOut: t.messagesOut.Load(), BytesOut: t.bytesOut.Load(),
		Malformed:   t.dropped[malformed].Load(),
		Oversized:   t.dropped[oversized].Load(),
		Foreign:     t.dropped[foreign].Load(),
		Unauthentic: t.dropped[unauthentic].Load(),
		Replayed:    t.dropped[replayed].Load(),
		Strange:     t.dropped[strange].Load(),
		Full:        t.dropped[full].Load(),
		Failed:      t.dropped[failed].Load(),
		Refused:     t.refused.Load(),
	}
}
