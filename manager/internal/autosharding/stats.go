package autosharding

import (
	"fmt"

	"github.com/leasehold-dev/leasehold"
	pb "github.com/leasehold-dev/leasehold/proto/autosharding/v1"
)

// Stats are the clients of a namespace at this manager, and its counters since the start.
type Stats struct {
	Clients                           int
	Sent, Accepted, Rejected, Reports uint64
	// Rejection is the client and its reason at the last rejection; empty if there is none.
	Rejection string
}

// Stats returns the statistics of the namespaces that have or had clients.
func (s *Service) Stats() map[leasehold.Namespace]Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[leasehold.Namespace]Stats, len(s.stats))
	for ns, st := range s.stats {
		out[ns] = *st
	}
	return out
}

// record changes the statistics of a namespace.
func (s *Service) record(ns leasehold.Namespace, change func(*Stats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats[ns]
	if st == nil {
		st = new(Stats)
		s.stats[ns] = st
	}
	change(st)
}

// forget removes the statistics of a namespace that does not exist.
func (s *Service) forget(ns leasehold.Namespace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.stats[ns]; st != nil && st.Clients == 0 {
		delete(s.stats, ns)
	}
}

// recordAck counts an acknowledgement, and logs a rejection.
func (s *Service) recordAck(c *client, a *pb.AssignmentAck) {
	if a.GetAccepted() {
		s.record(c.feed.ns, func(st *Stats) { st.Accepted++ })
		return
	}
	s.record(c.feed.ns, func(st *Stats) {
		st.Rejected++
		st.Rejection = fmt.Sprintf("%s, generation %d: %s", c.addr, a.GetGeneration(), a.GetErrorMessage())
	})
	if suppressed, ok := s.rejected.Allow(c.feed.ns, 1); ok {
		s.cfg.Logger.Warn("a gRPC client rejected an assignment and continues with the previous one", "namespace", c.feed.ns,
			"client", c.addr, "uuid", c.uuid, "generation", a.GetGeneration(), "why", a.GetErrorMessage(), "suppressed", suppressed)
	}
}
