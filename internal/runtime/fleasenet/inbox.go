package fleasenet

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/internal/runtime/logthrottle"
	"github.com/leasehold-dev/leasehold/secret"
)

// An inbox accepts packets of peers. It is safe for concurrent use.
type inbox struct {
	config    *Config
	keys      []secret.Text // that packets may be sealed with; the first is our own
	mark      byte          // what headers of our packets say about their seal
	trailer   int
	senders   map[flease.Process]*sender
	outsiders outsiders
	packer    *packer // for answers to strangers
	tally     *tally
	warned    *logthrottle.Throttle[flease.Process]
}

func newInbox(c *Config, p *packer, t *tally) *inbox {
	in := &inbox{
		config: c, keys: append([]secret.Text{c.Key}, c.OtherKeys...), mark: p.seal.mark(), trailer: p.seal.trailer(),
		packer: p, tally: t, senders: map[flease.Process]*sender{c.Self: new(sender)},
		warned: logthrottle.New[flease.Process](warnEvery),
	}
	for _, p := range c.Peers {
		in.senders[p.Process] = new(sender)
	}
	return in
}

// A reader hands packets over. Each goroutine that reads has its own.
type reader struct {
	*inbox
	envelope flease.Envelope
	messages []flease.Message
	decoder  decoder
	back     wayBack
	from     func() string // where the packet came from that is being read
	source   Source
	waiting  bool // something was handed over since drained was called
}

// packet hands a packet over, or drops and counts it. It writes over the packet.
func (r *reader) packet(b []byte) fate {
	why, fingerprint := r.open(b)
	if why != delivered {
		r.tally.drop(why, 1)
		if why == strange {
			r.hand(func(s *Source) { r.config.Strange(&r.envelope, fingerprint, s) })
		}
		return why
	}
	r.tally.received(len(b), len(r.messages))
	r.waiting = true
	r.hand(r.deliver)
	return delivered
}

func (r *reader) deliver(from *Source) { r.config.Receive(&r.envelope, r.messages, from) }

// open reads a packet into the envelope and the messages, or that of a stranger
// into the envelope. What is cheap to check is checked first.
func (r *reader) open(b []byte) (_ fate, fingerprint uint64) {
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
	var why fate
	if peer != nil {
		why = peer.open(b, &h, r.keys)
	} else {
		why = r.outsiders.open(b, &h, r.keys)
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

// warnEvery is how often the log mentions packets of a peer that are not authentic.
const warnEvery = time.Minute

// warn logs a packet that is not authentic and claims to be from a peer: usually
// that was started with another key.
func (r *reader) warn(peer flease.Process) {
	if r.config.Logger == nil || r.senders[peer] == nil {
		return
	}
	suppressed, ok := r.warned.Allow(peer, 1)
	if !ok {
		return
	}
	if place := slices.IndexFunc(r.config.Peers, func(p Peer) bool { return p.Process == peer }); place >= 0 {
		r.config.Logger.Warn("packets of a member are not authentic, and are dropped: has it another key?",
			"of", r.config.Peers[place].name(), "from", r.from(), "since_last", suppressed)
	}
}

// drain tells the receiver, if it was given anything, that there is no more for
// now.
func (r *reader) drain() {
	if r.waiting {
		r.waiting = false
		r.config.Drained()
	}
}

// A Source is where a packet came from. It is good until the call returns that it
// was given to.
type Source struct {
	reader *reader
	answer []byte
}

// Reply answers a packet on the way that it came: its sender may be elsewhere than
// where we look for it, or be a stranger. It is called under the lock that guards
// Send, and at most once; the answer goes out after that lock is free.
func (s *Source) Reply(e *flease.Envelope) {
	to, packer := s.reader.envelope.From, s.reader.packer
	if packer.numbers[to] == nil {
		packer.numbers[to] = new(uint64)
	}
	s.answer, _ = packer.pack(nil, MinPacket, to, e, nil)
}

// Addr is the address that the packet came from, for the log. With TCP it has the
// port of a connection, which is not one where anybody listens.
func (s *Source) Addr() string { return s.reader.from() }

// A wayBack sends a packet to where the one came from that is being read. It does
// not wait for anybody.
type wayBack func(to flease.Process, packet []byte)

// hand hands over what was read, and sends the answer, if there is one.
func (r *reader) hand(over func(*Source)) {
	r.source = Source{reader: r}
	over(&r.source)
	if answer := r.source.answer; answer != nil {
		r.back(r.envelope.From, answer)
	}
}
