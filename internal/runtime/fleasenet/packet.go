package fleasenet

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/secret"
)

const (
	magic0, magic1 = 'L', 'F'
	version        = 2
)

// Flags in the fourth byte of a header.
const (
	unsealed = 0
	sealed   = 1 << 0
	waiting  = 1 << 1 // the sender does not take part yet
	giveWay  = 1 << 2 // the addressee must stop: another process with its id runs
)

// Sizes of the parts of a packet, in bytes.
const (
	headerSize    = 36
	envelopeSize  = 24
	tagSize       = 16
	checksumSize  = 8
	minPacketSize = headerSize + envelopeSize + checksumSize // packet
)

// A header is the unencrypted part of a packet. The trailer authenticates it, too.
type header struct {
	sealed      byte // or unsealed
	waiting     bool
	giveWay     bool
	from, to    flease.Process
	incarnation uint64 // of the sender
	number      uint64 // rises with each packet from the sender to the addressee
	fingerprint uint64 // of the sender's configuration
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

// parse decodes the header of a packet, and reports whether it is valid.
func (h *header) parse(packet []byte) bool {
	if len(packet) < minPacketSize || packet[0] != magic0 || packet[1] != magic1 || packet[2] != version || packet[3] > sealed|waiting|giveWay {
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

// A seal encrypts and decrypts the packets of one incarnation of a process.
type seal struct {
	aead cipher.AEAD // nil: checksum only
}

// newSeal derives the seal of an incarnation from the shared key. Without a key the seal is a checksum. It takes
// microseconds.
func newSeal(shared secret.Text, p flease.Process, incarnation uint64) (seal, error) {
	if shared.Len() == 0 {
		return seal{}, nil
	}
	info := []byte("leasehold flease 2")
	info = binary.LittleEndian.AppendUint32(info, uint32(p))
	info = binary.LittleEndian.AppendUint64(info, incarnation)
	key, err := hkdf.Key(sha256.New, []byte(shared.Reveal()), nil, string(info), 32)
	if err != nil {
		return seal{}, leasehold.Errorf(op, leasehold.ErrInvalid, "", "key unusable: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return seal{}, leasehold.Errorf(op, leasehold.ErrInternal, "", "%w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return seal{}, leasehold.Errorf(op, leasehold.ErrInternal, "", "%w", err)
	}
	return seal{aead}, nil
}

// mark returns the flag for headers.
func (s seal) mark() byte {
	if s.aead == nil {
		return unsealed
	}
	return sealed
}

// trailer returns the number of bytes that close adds.
func (s seal) trailer() int {
	if s.aead == nil {
		return checksumSize
	}
	return tagSize
}

// A nonce is unique under the key of the sender's incarnation: packets to one
// addressee have different numbers.
type nonce [12]byte

func (n *nonce) set(h *header) []byte {
	binary.LittleEndian.PutUint32(n[:], uint32(h.to))
	binary.LittleEndian.PutUint64(n[4:], h.number)
	return n[:]
}

// close encrypts a packet in place and appends the trailer. The nonce is scratch space: a local variable would be
// allocated.
func (s seal) close(packet []byte, h *header, n *nonce) []byte {
	if s.aead == nil {
		return binary.LittleEndian.AppendUint64(packet, xxhash.Sum64(packet))
	}
	return s.aead.Seal(packet[:headerSize], n.set(h), packet[headerSize:], packet[:headerSize])
}

// open decrypts a packet in place, and reports whether it is authentic. The packet keeps its length; the
// content of its trailer is undefined.
func (s seal) open(packet []byte, h *header, n *nonce) bool {
	if s.aead == nil {
		end := len(packet) - checksumSize
		return binary.LittleEndian.Uint64(packet[end:]) == xxhash.Sum64(packet[:end])
	}
	_, err := s.aead.Open(packet[headerSize:headerSize], n.set(h), packet[headerSize:], packet[:headerSize])
	return err == nil
}
