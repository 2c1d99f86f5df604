package fleasenet

import (
	"bytes"
	"slices"
	"sync"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/secret"
)

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

// outsiders are senders that are no peers, and have proved that they have the key: as
// a rule, processes of another version of the group. They are not forgotten, and there
// are at most as many as a group can have.
type outsiders struct {
	mu      sync.Mutex
	senders map[flease.Process]*sender
}

// open opens the packet of a process that is no peer. Only one that is authentic is
// remembered.
func (s *outsiders) open(packet []byte, h *header, keys []secret.Text) fate {
	s.mu.Lock()
	defer s.mu.Unlock()
	who := s.senders[h.from]
	switch {
	case who != nil:
		return who.open(packet, h, keys)
	case len(s.senders) >= MaxPeers:
		return foreign
	}
	who = new(sender)
	why := who.open(packet, h, keys)
	if why == delivered {
		if s.senders == nil {
			s.senders = make(map[flease.Process]*sender)
		}
		s.senders[h.from] = who
	}
	return why
}
