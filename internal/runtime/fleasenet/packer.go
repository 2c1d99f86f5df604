package fleasenet

import (
	"fmt"
	"slices"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// A packer encodes and encrypts the packets of a process. It is for one goroutine at a time.
type packer struct {
	config      *Config
	incarnation uint64
	seal        seal
	numbers     map[flease.Process]*uint64 // of the newest packet to each peer
	counters    *counters
	encoder     encoder
	nonce       nonce
}

func newPacker(c *Config, t *counters) (*packer, error) {
	s, err := newSeal(c.Key, c.Self, c.Incarnation)
	if err != nil {
		return nil, err
	}
	p := &packer{
		config: c, incarnation: c.Incarnation, seal: s, counters: t,
		numbers: map[flease.Process]*uint64{c.Self: new(uint64)},
	}
	for _, peer := range c.Peers {
		p.numbers[peer.Process] = new(uint64)
	}
	return p, nil
}

// pack appends one packet of at most limit bytes to b, with as many messages as fit, and returns the
// remaining messages. The addressee must be a peer, or this process, because a twin may run at its address.
// An envelope of another process is a bug of the caller and panics. Another incarnation in the envelope
// replaces the current one.
func (p *packer) pack(b []byte, limit int, to flease.Process, e *flease.Envelope, msgs []flease.Message) ([]byte, []flease.Message) {
	if e.From != p.config.Self {
		panic(fmt.Sprintf("fleasenet: envelope of process %d sent by process %d", e.From, p.config.Self))
	}
	if e.Incarnation != p.incarnation {
		p.setIncarnation(e.Incarnation)
	}
	number := p.numbers[to]
	*number++
	h := header{
		sealed: p.seal.mark(), waiting: e.Waiting, giveWay: e.GiveWay, from: p.config.Self, to: to,
		incarnation: p.incarnation, number: *number, fingerprint: p.config.Fingerprint,
	}
	start := len(b)
	b = slices.Grow(b, limit+largestMessage+maxField)
	b = appendEnvelope(h.append(b), e)
	b, n, skipped := p.messages(b, start+limit-p.seal.trailer(), to, e, msgs)
	packet := p.seal.close(b[start:], &h, &p.nonce)
	p.counters.sent(len(packet), n-skipped)
	return b[:start+len(packet)], msgs[n:]
}

// setIncarnation changes the incarnation. It has a key of its own, so restarting the packet numbers reuses no
// nonce.
func (p *packer) setIncarnation(incarnation uint64) {
	s, err := newSeal(p.config.Key, p.config.Self, incarnation)
	if err != nil {
		panic(err) // the key was valid for the previous one
	}
	p.incarnation, p.seal = incarnation, s
	for _, number := range p.numbers {
		*number = 0
	}
}

// messages appends messages up to a length of limit. n is the number of processed messages; skipped of these have too
// long a name, which the machine should have rejected.
func (p *packer) messages(b []byte, limit int, to flease.Process, e *flease.Envelope, msgs []flease.Message) (_ []byte, n, skipped int) {
	w := &p.encoder
	w.begin(p.config.Self, to, e)
	w.b, w.at = b[:cap(b)], len(b)
	for i := range msgs {
		if len(msgs[i].Name) > flease.MaxName {
			skipped++
			continue
		}
		before := w.at
		w.message(&msgs[i])
		if w.at > limit {
			return w.b[:before], i, p.skip(skipped)
		}
	}
	return w.b[:w.at], len(msgs), p.skip(skipped)
}

func (p *packer) skip(n int) int {
	p.counters.drop(oversized, n)
	return n
}
