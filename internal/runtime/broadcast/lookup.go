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
	namespace leasehold.Namespace // set by Subscribe
	since     mono.Instant        // time of Subscribe

	// The following are guarded by the receiver's lock.
	question *protocol.LookupRequest // queued for the machine, nil if none
	asked    mono.Instant            // time of the last request
	lsn      leasehold.LSN           // LSN of the lookup at that request
	behind   uint64                  // number of changes that it lacked
}

// ID returns the number of the stream, which identifies the lookup in the machine.
func (s *Lookup) ID() uint64 { return s.id }

// Serve calls handle for each request, one at a time, and sends the lookup's messages, until the stream ends.
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

// Ask queues a request, in place of a queued one, and reports whether the queue was empty. Then the caller
// passes [Lookup.Question] to the machine when it is idle. A lookup without a reply retries, so a slow
// manager would otherwise send ever more replies that the lookup discards.
func (s *Lookup) Ask(now mono.Instant, r *protocol.LookupRequest) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first = s.question == nil
	s.question, s.asked, s.lsn = r, now, r.LSN
	return first
}

// Question removes and returns the queued request.
func (s *Lookup) Question() *protocol.LookupRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.question
	s.question = nil
	return r
}

// answered records the number of changes that the lookup lacked at its request.
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
