package fleasenet

import "sync/atomic"

// Counters are what a network has sent, received and dropped since it started.
// What the system loses, because nobody reads fast enough or on the way, it does
// not tell us.
type Counters struct {
	PacketsIn, MessagesIn, BytesIn    uint64 // good ones
	PacketsOut, MessagesOut, BytesOut uint64 // written; some may be Full or Failed after that

	// Packets that were dropped on arrival.
	Malformed   uint64 // not a packet of ours, or of another version, or cut off
	Oversized   uint64 // larger than MaxPacket. Also messages with too long a name, on their way out
	Foreign     uint64 // from a process that is not a peer, or for another process. Also to no peer
	Unauthentic uint64 // not sealed with our key, or changed on the way
	Replayed    uint64 // had before, or older than what is remembered
	Strange     uint64 // from a process with another fingerprint
	// Packets that were dropped on the way out.
	Full   uint64 // no room in a queue, or in the system's buffer
	Failed uint64 // the peer's address is unknown, or the system or the connection refused
	// Refused counts connections that came when there were too many.
	Refused uint64
}

type fate uint8

const (
	delivered fate = iota
	malformed
	oversized
	foreign
	unauthentic
	replayed
	strange
	full
	failed
	fates
)

// A tally is Counters in the making, safe for concurrent use.
type tally struct {
	in, messagesIn, bytesIn    atomic.Uint64
	out, messagesOut, bytesOut atomic.Uint64
	dropped                    [fates]atomic.Uint64
	refused                    atomic.Uint64
}

func (t *tally) drop(why fate, packets int) {
	if packets > 0 {
		t.dropped[why].Add(uint64(packets))
	}
}

func (t *tally) received(bytes, messages int) {
	t.in.Add(1)
	t.messagesIn.Add(uint64(messages))
	t.bytesIn.Add(uint64(bytes))
}

func (t *tally) sent(bytes, messages int) {
	t.out.Add(1)
	t.messagesOut.Add(uint64(messages))
	t.bytesOut.Add(uint64(bytes))
}

// Counters returns what was counted so far.
func (t *tally) Counters() Counters {
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
