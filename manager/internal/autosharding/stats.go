package autosharding

import (
	"maps"
	"time"

	"github.com/leasehold-dev/leasehold"
	pb "github.com/leasehold-dev/leasehold/proto/autosharding/v1"
)

// Stats are the clients of a namespace at this manager, and its counters since the start.
type Stats struct {
	Clients                           int
	Sent, Accepted, Rejected, Reports uint64
	// Rejection is the last rejection; zero if there is none.
	Rejection Rejection
}

// A Rejection is an acknowledgement that the client does not use an assignment.
type Rejection struct {
	At         time.Time
	Client     string // its address
	Generation int64
	Reason     string
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

// Prune removes the statistics of namespaces that do not exist.
func (s *Service) Prune(exists func(leasehold.Namespace) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.stats, func(ns leasehold.Namespace, st *Stats) bool { return st.Clients == 0 && !exists(ns) })
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
	if change(st); *st == (Stats{}) {
		delete(s.stats, ns) // a namespace that may not exist
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
		st.Rejection = Rejection{At: time.Now(), Client: c.addr, Generation: a.GetGeneration(), Reason: a.GetErrorMessage()}
	})
	if suppressed, ok := s.rejected.Allow(c.feed.ns, 1); ok {
		s.cfg.Logger.Warn("a gRPC client rejected an assignment and continues with the previous one", "namespace", c.feed.ns,
			"client", c.addr, "uuid", c.uuid, "generation", a.GetGeneration(), "why", a.GetErrorMessage(), "suppressed", suppressed)
	}
}
