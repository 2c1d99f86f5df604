package fleasenet

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/internal/runtime/logthrottle"
	"github.com/leasehold-dev/leasehold/secret"
)

// An inbox decrypts and checks received packets. It is safe for concurrent use.
type inbox struct {
	config    *Config
	keys      []secret.Text // accepted; the first is the key for sending
	mark      byte          // sealed or unsealed, in the headers of this group
	trailer   int
	senders   map[flease.Process]*sender
	strangers strangers
	packer    *packer // for Source.Reply
	counters  *counters
	warned    *logthrottle.Throttle[flease.Process]
}

func newInbox(c *Config, p *packer, t *counters) *inbox {
	in := &inbox{
		config: c, keys: append([]secret.Text{c.Key}, c.OtherKeys...), mark: p.seal.mark(), trailer: p.seal.trailer(),
		packer: p, counters: t, senders: map[flease.Process]*sender{c.Self: new(sender)},
		warned: logthrottle.New[flease.Process](warnInterval),
	}
	for _, p := range c.Peers {
		in.senders[p.Process] = new(sender)
	}
	return in
}

// A reader decodes packets and delivers them. Each reading goroutine has its own.
type reader struct {
	*inbox
	envelope flease.Envelope
	messages []flease.Message
	decoder  decoder
	back     replyFunc
	from     func() string // address of the current packet
	source   Source
	waiting  bool // a packet was delivered since the last call of Drained
}

// packet delivers a packet, or drops and counts it. It overwrites the packet.
func (r *reader) packet(b []byte) outcome {
	why, fingerprint := r.open(b)
	if why != delivered {
		r.counters.drop(why, 1)
		if why == strange {
			r.deliverAndReply(func(s *Source) { r.config.Strange(&r.envelope, fingerprint, s) })
		}
		return why
	}
	r.counters.received(len(b), len(r.messages))
	r.waiting = true
	r.deliverAndReply(r.deliver)
	return delivered
}

func (r *reader) deliver(from *Source) { r.config.Receive(&r.envelope, r.messages, from) }

// open decodes a packet into envelope and messages, with another fingerprint only into envelope. Cheap checks come
// first.
func (r *reader) open(b []byte) (_ outcome, fingerprint uint64) {
	var h header
	if len(b) > MaxPacket {
		return oversized, 0
	}
	if !h.parse(b) {
		return malformed, 0
	}
	peer := r.senders[h.from]
	if h.to != r.config.Self || h.incarnation == 0 || peer == nil && h.fingerprint == r.config.Fingerprint {
		return foreign, 0
	}
	if h.sealed != r.mark {
		r.warn(h.from)
		return unauthentic, 0
	}
	end := len(b) - r.trailer
	if end < headerSize+envelopeSize {
		return malformed, 0
	}
	var why outcome
	if peer != nil {
		why = peer.open(b, &h, r.keys)
	} else {
		why = r.strangers.open(b, &h, r.keys)
	}
	if why == unauthentic {
		r.warn(h.from)
	}
	if why != delivered {
		return why, 0
	}
	r.envelope = parseEnvelope(b[headerSize:], &h)
	if h.fingerprint != r.config.Fingerprint {
		return strange, h.fingerprint
	}
	d := &r.decoder
	d.begin(h.from, h.to, &r.envelope)
	d.b, d.at, d.end = b, headerSize+envelopeSize, end
	var ok bool
	if r.messages, ok = d.messages(r.messages[:0]); !ok {
		return malformed, 0
	}
	return delivered, 0
}

// warnInterval is the minimum interval of warnings about packets of one peer.
const warnInterval = time.Minute

// warn logs a packet of a peer that is not authentic. Usually the peer has another key.
func (r *reader) warn(peer flease.Process) {
	if r.config.Logger == nil || r.senders[peer] == nil {
		return
	}
	suppressed, ok := r.warned.Allow(peer, 1)
	if !ok {
		return
	}
	if i := slices.IndexFunc(r.config.Peers, func(p Peer) bool { return p.Process == peer }); i >= 0 {
		r.config.Logger.Warn("packets of a member dropped: they are not authentic; compare the keys",
			"of", r.config.Peers[i].name(), "from", r.from(), "since_last", suppressed)
	}
}

// drain calls Drained if packets were delivered since the last call.
func (r *reader) drain() {
	if r.waiting {
		r.waiting = false
		r.config.Drained()
	}
}

// A Source is the origin of a packet. It is valid until Receive or Strange returns.
type Source struct {
	reader *reader
	reply  []byte
}

// Reply sends an envelope to the address of the packet's sender, which may differ from that of the peer with its id.
// It is called under the caller's mutex for Send, at most once. The reply is sent after Receive or Strange
// returns.
func (s *Source) Reply(e *flease.Envelope) {
	to, packer := s.reader.envelope.From, s.reader.packer
	if packer.numbers[to] == nil {
		packer.numbers[to] = new(uint64)
	}
	s.reply, _ = packer.pack(nil, MinPacket, to, e, nil)
}

// Addr returns the source address of the packet, for the log. With TCP it has the port of the connection, not the
// listen port.
func (s *Source) Addr() string { return s.reader.from() }

// A replyFunc sends a packet to the sender of the current one without blocking on it.
type replyFunc func(to flease.Process, packet []byte)

// deliverAndReply calls a callback with the source of the packet, and sends its reply, if any.
func (r *reader) deliverAndReply(callback func(*Source)) {
	r.source = Source{reader: r}
	callback(&r.source)
	if reply := r.source.reply; reply != nil {
		r.back(r.envelope.From, reply)
	}
}
