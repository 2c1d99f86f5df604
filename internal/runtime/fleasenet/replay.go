package fleasenet

import (
	"bytes"
	"slices"
	"sync"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/secret"
)

// maxIncarnations is the maximum number of replay windows per process: of the current incarnation, of
// earlier ones with delayed packets, and of one or two that an attacker replays.
const maxIncarnations = 4

// A sender has the replay windows of a process.
type sender struct {
	mu           sync.Mutex
	incarnations []*incarnation // latest packet first
}

type incarnation struct {
	id     uint64
	sent   flease.Wall // highest Sent in its packets
	seal   seal
	nonce  nonce
	window window
}

// open decrypts a packet and checks it for replay. Only an authentic packet adds an incarnation, so an
// attacker without the key cannot evict one.
func (s *sender) open(packet []byte, h *header, keys []secret.Text) outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.find(h)
	switch {
	case h.number == 0 || known != nil && !known.window.isNew(h.number):
		return replayed // the first packet has number 1
	case known == nil:
		if known = openFirst(packet, h, keys); known == nil {
			return unauthentic
		}
	case !known.seal.open(packet, h, &known.nonce):
		return unauthentic
	}
	known.window.mark(h.number)
	known.sent = max(known.sent, parseEnvelope(packet[headerSize:], h).Sent)
	s.moveToFront(known)
	return delivered
}

// find returns the incarnation of a packet, nil if it has no window.
func (s *sender) find(h *header) *incarnation {
	for _, known := range s.incarnations {
		if known.id == h.incarnation {
			return known
		}
	}
	return nil
}

// openFirst decrypts the first packet of an incarnation with each key. It returns nil if none fits. A failed attempt
// destroys the packet, so all but the last use a copy.
func openFirst(packet []byte, h *header, keys []secret.Text) *incarnation {
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

// moveToFront moves an incarnation to the front. A new one evicts the least recently used, but never the one with the
// highest Sent, so that replays of many old incarnations cannot evict it.
func (s *sender) moveToFront(k *incarnation) {
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

// strangers are authenticated senders that are not peers: usually processes with another version of the group's
// configuration. They are never evicted; there are at most MaxPeers.
type strangers struct {
	mu      sync.Mutex
	senders map[flease.Process]*sender
}

// open opens a packet of a process that is not a peer. Only an authentic one adds a sender.
func (s *strangers) open(packet []byte, h *header, keys []secret.Text) outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.senders[h.from]
	switch {
	case known != nil:
		return known.open(packet, h, keys)
	case len(s.senders) >= MaxPeers:
		return foreign
	}
	known = new(sender)
	why := known.open(packet, h, keys)
	if why == delivered {
		if s.senders == nil {
			s.senders = make(map[flease.Process]*sender)
		}
		s.senders[h.from] = known
	}
	return why
}
