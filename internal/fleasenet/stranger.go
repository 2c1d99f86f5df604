package fleasenet

import (
	"sync"

	"github.com/leasehold-dev/leasehold/internal/machine/flease"
)

// outsiders are those who are no peers, and have proved that they have the key: as
// a rule, processes of the group that is to take the place of ours, or of the one
// whose place we are to take. They are not forgotten, and no more are heard than
// a group can have.
type outsiders struct {
	mu      sync.Mutex
	senders map[flease.Process]*sender
}

// find returns a stranger, a new one if it is not known, and nil if there is no
// room for it.
func (s *outsiders) find(p flease.Process) *sender {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.senders[p]; known != nil {
		return known
	}
	if len(s.senders) >= MaxPeers {
		return nil
	}
	return new(sender)
}

// keep remembers a stranger that is authentic.
func (s *outsiders) keep(p flease.Process, who *sender) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.senders == nil {
		s.senders = make(map[flease.Process]*sender)
	}
	if s.senders[p] == nil && len(s.senders) < MaxPeers {
		s.senders[p] = who
	}
}
