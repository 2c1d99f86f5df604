package fleasenet

import "github.com/leasehold-dev/leasehold/internal/core/machine/flease"

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
