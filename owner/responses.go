package owner

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
)

// responses contains the last response or error of each manager, for the error of Join. It is
// safe for concurrent use.
type responses struct {
	mu   sync.Mutex
	last map[string]string
	// versions are the protocol versions of the managers.
	versions map[string]uint32
	// down contains the disconnected managers; denial is the last denial of access.
	down   map[string]bool
	denial error
	// nameTaken: according to the last leader, another process has this owner's name.
	nameTaken bool
	// wait is the longest time until a silent process loses its name.
	wait time.Duration
}

// maxResponses bounds the number of managers in the maps, which include the leaders of
// redirects.
const maxResponses = maxManagers + 16

// expect adds the configured managers, so that the error also contains those without a response.
func (s *responses) expect(managers []string) {
	for _, addr := range managers {
		s.set(addr, "has not replied")
	}
}

// disconnected records why a manager is disconnected, and reports whether the error has changed.
// If all managers are disconnected, it returns the last denial of access. A denial by
// one manager alone is not final, because the access file of another may be newer.
func (s *responses) disconnected(from string, why error, managers []string) (changed bool, denial error) {
	changed = s.failed(from, why)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down[from] = true
	if leasehold.KindOf(why) == leasehold.ErrDenied {
		s.denial = why
	}
	if slices.ContainsFunc(managers, func(addr string) bool { return !s.down[addr] }) {
		return changed, nil
	}
	return changed, s.denial
}

// failed records an error of a manager, and reports whether it has changed.
func (s *responses) failed(from string, why error) bool { return s.set(from, why.Error()) }

// redirected records that a manager does not lead, and returns the text for it.
func (s *responses) redirected(from string, n protocol.NotLeader) string {
	response := "does not lead, and has no leader"
	if n.Leader != "" {
		response = fmt.Sprintf("does not lead, redirects to %s", n.Leader)
	}
	s.set(from, response)
	return response
}

func (s *responses) replied(from string, r *protocol.LeaseReply) {
	switch {
	case r.Refusal != leasehold.Other:
		s.set(from, fmt.Sprintf("leads, and refuses: %v", r.Refusal))
	case r.Incumbent != nil:
		s.set(from, fmt.Sprintf("leads, but session %s at %s has the name %q", r.Incumbent.Session.Short(), r.Incumbent.Addr, r.Incumbent.Owner))
	default:
		s.set(from, "leads")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nameTaken = r.Incumbent != nil
	s.wait = r.Timing.Drift.Stretch(r.Timing.Lease)
}

func (s *responses) longestWait() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wait
}

func (s *responses) set(from, response string) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil || len(s.last) >= maxResponses {
		s.last, s.down = make(map[string]string), make(map[string]bool)
	}
	changed = s.last[from] != response
	s.last[from] = response
	delete(s.down, from)
	return changed
}

// setVersion records the protocol version of a manager, which only its first message must contain.
func (s *responses) setVersion(from string, version uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.versions == nil || len(s.versions) >= maxResponses {
		s.versions = make(map[string]uint32)
	}
	s.versions[from] = version
}

// version returns the protocol version of a manager, by default this process's version.
func (s *responses) version(from string) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, known := s.versions[from]; known {
		return v
	}
	return wire.Version
}

// kind returns the kind of the error of Join.
func (s *responses) kind() leasehold.Kind {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nameTaken {
		return leasehold.ErrNameTaken
	}
	return leasehold.ErrUnavailable
}

// String lists the managers, sorted, with their last responses.
func (s *responses) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := make([]string, 0, len(s.last))
	for from, response := range s.last {
		lines = append(lines, from+": "+response)
	}
	slices.Sort(lines)
	return strings.Join(lines, "; ")
}
