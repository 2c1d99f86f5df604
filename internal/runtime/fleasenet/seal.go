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

// A seal closes the packets of one incarnation of a process, and opens them.
type seal struct {
	aead cipher.AEAD // nil: a checksum
}

// newSeal derives the seal of an incarnation from what all processes share. No key makes
// seals that are mere checksums. It takes microseconds.
func newSeal(shared secret.Text, p flease.Process, incarnation uint64) (seal, error) {
	if shared.Len() == 0 {
		return seal{}, nil
	}
	info := []byte("leasehold flease 2")
	info = binary.LittleEndian.AppendUint32(info, uint32(p))
	info = binary.LittleEndian.AppendUint64(info, incarnation)
	key, err := hkdf.Key(sha256.New, []byte(shared.Reveal()), nil, string(info), 32)
	if err != nil {
		return seal{}, leasehold.Errorf(op, leasehold.ErrInvalid, "", "this key cannot be used: %w", err)
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

// mark is what headers say about the seal.
func (s seal) mark() byte {
	if s.aead == nil {
		return unsealed
	}
	return sealed
}

// trailer is how many bytes close adds.
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

// close encrypts a packet, in place, and appends the trailer. The nonce is scratch:
// a variable here would be allocated every time.
func (s seal) close(packet []byte, h *header, n *nonce) []byte {
	if s.aead == nil {
		return binary.LittleEndian.AppendUint64(packet, xxhash.Sum64(packet))
	}
	return s.aead.Seal(packet[:headerSize], n.set(h), packet[headerSize:], packet[:headerSize])
}

// open decrypts a packet, in place, and reports whether it is authentic. The
// packet keeps its length: after its body comes a trailer that means nothing.
func (s seal) open(packet []byte, h *header, n *nonce) bool {
	if s.aead == nil {
		end := len(packet) - checksumSize
		return binary.LittleEndian.Uint64(packet[end:]) == xxhash.Sum64(packet[:end])
	}
	_, err := s.aead.Open(packet[headerSize:headerSize], n.set(h), packet[headerSize:], packet[:headerSize])
	return err == nil
}
