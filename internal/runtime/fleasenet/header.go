package fleasenet

import (
	"encoding/binary"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

const (
	magic0, magic1 = 'L', 'F'
	version        = 2
)

// What the fourth byte of a header says.
const (
	unsealed = 0
	sealed   = 1 << 0
	waiting  = 1 << 1 // the sender does not take part yet
	giveWay  = 1 << 2 // another process with the addressee's id is alive, and stays
)

// Sizes of the parts of a packet, in bytes.
const (
	headerSize   = 36
	envelopeSize = 24
	tagSize      = 16
	checksumSize = 8
	smallest     = headerSize + envelopeSize + checksumSize // packet
)

// A header is what can be read of a packet without a key. It is part of what the
// trailer vouches for.
type header struct {
	sealed      byte // or unsealed
	waiting     bool
	giveWay     bool
	from, to    flease.Process
	incarnation uint64 // of the sender
	number      uint64 // rises with each packet from the sender to the addressee
	fingerprint uint64 // of what the sender was told
}

func (h *header) append(b []byte) []byte {
	marks := h.sealed
	if h.waiting {
		marks |= waiting
	}
	if h.giveWay {
		marks |= giveWay
	}
	b = append(b, magic0, magic1, version, marks)
	b = binary.LittleEndian.AppendUint32(b, uint32(h.from))
	b = binary.LittleEndian.AppendUint32(b, uint32(h.to))
	b = binary.LittleEndian.AppendUint64(b, h.incarnation)
	b = binary.LittleEndian.AppendUint64(b, h.number)
	return binary.LittleEndian.AppendUint64(b, h.fingerprint)
}

// parse reads the header of a packet, and reports whether it may be one of ours.
func (h *header) parse(packet []byte) bool {
	if len(packet) < smallest || packet[0] != magic0 || packet[1] != magic1 || packet[2] != version || packet[3] > sealed|waiting|giveWay {
		return false
	}
	h.sealed, h.waiting, h.giveWay = packet[3]&sealed, packet[3]&waiting != 0, packet[3]&giveWay != 0
	h.from = flease.Process(binary.LittleEndian.Uint32(packet[4:]))
	h.to = flease.Process(binary.LittleEndian.Uint32(packet[8:]))
	h.incarnation = binary.LittleEndian.Uint64(packet[12:])
	h.number = binary.LittleEndian.Uint64(packet[20:])
	h.fingerprint = binary.LittleEndian.Uint64(packet[28:])
	return true
}

func appendEnvelope(b []byte, e *flease.Envelope) []byte {
	b = binary.LittleEndian.AppendUint64(b, e.To)
	b = binary.LittleEndian.AppendUint64(b, uint64(e.Sent))
	return binary.LittleEndian.AppendUint64(b, uint64(e.Echo))
}

func parseEnvelope(b []byte, h *header) flease.Envelope {
	return flease.Envelope{
		From:        h.from,
		Incarnation: h.incarnation,
		Waiting:     h.waiting,
		GiveWay:     h.giveWay,
		To:          binary.LittleEndian.Uint64(b),
		Sent:        flease.Wall(binary.LittleEndian.Uint64(b[8:])),
		Echo:        flease.Wall(binary.LittleEndian.Uint64(b[16:])),
	}
}
