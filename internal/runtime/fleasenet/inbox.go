package fleasenet

import (
	"bytes"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/internal/runtime/logthrottle"
	"github.com/leasehold-dev/leasehold/secret"
)

// An inbox knows whose packets are welcome. It is safe for concurrent use.
type inbox struct {
	self        flease.Process
	keys        []secret.Text // the first is our own
	fingerprint uint64
	mark        byte // what headers of our packets say about their seal
	trailer     int
	senders     map[flease.Process]*sender
	outsiders   outsiders
	packer      *packer // for answers to strangers
	tally       *tally
	receive     func(*flease.Envelope, []flease.Message, *Source)
	strange     func(*flease.Envelope, uint64, *Source)
	drained     func()
	log         *slog.Logger
	names       map[flease.Process]string // of peers, for the log
	warned      *logthrottle.Throttle[flease.Process]
}

func newInbox(c *Config, p *packer, t *tally) *inbox {
	in := &inbox{
		self: c.Self, keys: c.keys(), fingerprint: c.Fingerprint,
		mark: p.seal.mark(), trailer: p.seal.trailer(), packer: p, tally: t,
		receive: c.Receive, strange: c.Strange, drained: c.Drained, senders: map[flease.Process]*sender{c.Self: new(sender)},
		log: c.Logger, names: make(map[flease.Process]string), warned: logthrottle.New[flease.Process](warnEvery),
	}
	for _, p := range c.Peers {
		in.senders[p.Process], in.names[p.Process] = new(sender), p.name()
	}
	return in
}

// maxIncarnations is how many incarnations of a process are remembered: the
// present one, those whose packets may still be under way, and one or two that
// somebody replays.
const maxIncarnations = 4

// A sender is what is known about a peer from its packets.
type sender struct {
	mu           sync.Mutex
	incarnations []*incarnation // the one heard last is first
}

type incarnation struct {
	id     uint64
	sent   flease.Wall // the highest Sent that it has used
	seal   seal
	nonce  nonce
	window window
}

// open decrypts a packet, and says whether it is good. An incarnation is
// remembered only when a packet has proved that it was there, so that nobody
// without the key can make us forget one.
func (s *sender) open(packet []byte, h *header, keys []secret.Text) fate {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.find(h)
	switch {
	case h.number == 0 || known != nil && !known.window.fresh(h.number):
		return replayed // the first packet has number 1
	case known == nil:
		if known = meet(packet, h, keys); known == nil {
			return unauthentic
		}
	case !known.seal.open(packet, h, &known.nonce):
		return unauthentic
	}
	known.window.mark(h.number)
	known.sent = max(known.sent, parseEnvelope(packet[headerSize:], h).Sent)
	s.heard(known)
	return delivered
}

// find returns the incarnation of a packet, nil if it is not known.
func (s *sender) find(h *header) *incarnation {
	for _, known := range s.incarnations {
		if known.id == h.incarnation {
			return known
		}
	}
	return nil
}

// meet decrypts the first packet of an incarnation, and finds out by that with which of
// the keys it seals. It returns nil if none fits. What is opened with a wrong key is
// destroyed: all but the last are tried on a copy.
func meet(packet []byte, h *header, keys []secret.Text) *incarnation {
	for i, key := range keys {
		seal, err := newSeal(key, h.from, h.incarnation)
		if err != nil {
			return nil
		}
		first, attempt := &incarnation{id: h.incarnation, seal: seal}, packet
		if i < len(keys)-1 {
			attempt = bytes.Clone(packet)
		}
		if first.seal.open(attempt, h, &first.nonce) {
			copy(packet, attempt)
			return first
		}
	}
	return nil
}

// heard moves an incarnation to the front. If it is new, the one that was silent
// for longest makes room, but not the one that is the newest by the sender's own
// clock: whoever replays what he has recorded of many cannot make us forget it.
func (s *sender) heard(k *incarnation) {
	if len(s.incarnations) > 0 && s.incarnations[0] == k {
		return
	}
	list := append(make([]*incarnation, 0, maxIncarnations+1), k)
	newest := k
	for _, other := range s.incarnations {
		if other != k {
			list = append(list, other)
		}
		if other.sent > newest.sent {
			newest = other
		}
	}
	if last := len(list) - 1; last == maxIncarnations {
		if list[last] == newest {
			last--
		}
		list = slices.Delete(list, last, last+1)
	}
	s.incarnations = list
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
			r.hand(func(s *Source) { r.strange(&r.envelope, fingerprint, s) })
		}
		return why
	}
	r.tally.received(len(b), len(r.messages))
	r.waiting = true
	r.hand(r.deliver)
	return delivered
}

// deliver hands over a packet of a peer.
func (r *reader) deliver(from *Source) { r.receive(&r.envelope, r.messages, from) }

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
	if h.to != r.self || h.incarnation == 0 || peer == nil && h.fingerprint == r.fingerprint {
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
	why := r.unseal(peer, b, &h)
	if why == unauthentic {
		r.warn(h.from)
	}
	if why != delivered {
		return why, 0
	}
	r.envelope = parseEnvelope(b[headerSize:], &h)
	if h.fingerprint != r.fingerprint {
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

// unseal decrypts a packet of a peer, or of an outsider if peer is nil.
func (r *reader) unseal(peer *sender, packet []byte, h *header) fate {
	if peer == nil {
		return r.outsiders.open(packet, h, r.keys)
	}
	return peer.open(packet, h, r.keys)
}

// warnEvery is how often the log mentions packets of a peer that are not authentic.
const warnEvery = time.Minute

// warn logs a packet that is not authentic and claims to be from a peer: usually
// that was started with another key.
func (r *reader) warn(peer flease.Process) {
	name, known := r.names[peer]
	if !known || r.log == nil {
		return
	}
	if suppressed, ok := r.warned.Allow(peer, 1); ok {
		r.log.Warn("packets of a member are not authentic, and are dropped: has it another key?", "of", name, "from", r.from(), "since_last", suppressed)
	}
}

// drain tells the receiver, if it was given anything, that there is no more for
// now.
func (r *reader) drain() {
	if r.waiting {
		r.waiting = false
		r.drained()
	}
}
