package broadcast

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A Lookup is one stream of a lookup.
type Lookup struct {
	receiver
	lookups *Lookups
	id      uint64
	addr    string // of the peer
	recv    func() (*leaseholdv1.FollowRequest, error)

	// The following are guarded by the lock of lookups.
	namespace leasehold.Namespace // once it is known
	since     mono.Instant        // when it subscribed

	// The following are guarded by the receiver's lock.
	question *protocol.LookupRequest // that waits for the machine, nil if none
	asked    mono.Instant            // when it last asked
	lsn      leasehold.LSN           // the last change that it had then
	behind   uint64                  // how many changes it lacked
}

// ID returns the number of the stream, which the machine has as the name of the lookup.
func (s *Lookup) ID() uint64 { return s.id }

// Serve calls handle for each request, one at a time, and sends what is meant for the lookup, until
// the stream ends.
func (s *Lookup) Serve(handle func(*leaseholdv1.FollowRequest) error) error {
	defer s.leave()
	return serve(&s.lookups.group, &s.receiver, s.recv, handle)
}

// Subscribe makes a stream receive the changes of a namespace.
func (s *Lookup) Subscribe(now mono.Instant, name leasehold.Namespace) {
	l := s.lookups
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.left {
		return // its first request was handled after the handler of the stream had returned
	}
	s.namespace, s.since = name, now
	ns := l.namespaces[name]
	if ns == nil {
		ns = &namespace{lookups: make(map[uint64]*Lookup)}
		l.namespaces[name] = ns
	}
	ns.lookups[s.id] = s
}

func (s *Lookup) leave() {
	s.with(func(q *queue) { q.state = closed })
	l := s.lookups
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count--
	s.left = true
	delete(l.streams, s.id)
	if ns := l.namespaces[s.namespace]; ns != nil {
		delete(ns.lookups, s.id)
		if len(ns.lookups) == 0 {
			delete(l.namespaces, s.namespace)
		}
	}
}

// Ask takes a question, in place of the one that waits for the machine, and reports whether none
// did. Then the machine must be given [Lookup.Question] when it is idle. A lookup that gets no
// answer asks again, so a slow manager would otherwise answer ever more questions whose answers
// the lookup discards.
func (s *Lookup) Ask(now mono.Instant, r *protocol.LookupRequest) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first = s.question == nil
	s.question, s.asked, s.lsn = r, now, r.LSN
	return first
}

// Question removes the question that waits.
func (s *Lookup) Question() *protocol.LookupRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.question
	s.question = nil
	return r
}

// answered records how many changes the lookup lacked when it asked.
func (s *Lookup) answered(lsn leasehold.LSN) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behind = 0
	if lsn > s.lsn {
		s.behind = uint64(lsn - s.lsn)
	}
}

func (s *Lookup) status(now mono.Instant) *leaseholdv1.LookupStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &leaseholdv1.LookupStatus{
		Addr: s.addr, ConnectedFor: int64(now.Sub(s.since)), Heard: int64(now.Sub(s.asked)), Lsn: uint64(s.lsn), Behind: s.behind,
	}
}
