package fleasenet

import (
	"sync"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/secret"
)

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
