package agent

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/owner"
)

// A session is a program that has joined, until it leaves or is silent for longer than its TTL.
type session struct {
	agent     *Agent
	id        string
	namespace leasehold.Namespace
	addr      string
	ttl       time.Duration
	reported  bool // the program reports its load
	owner     *owner.Owner
	process   *process // whose end ends the session; nil if other processes may use it
	feed      feed

	over chan struct{} // closed when the session starts to end
	gone chan struct{} // closed when the owner is closed

	mu       sync.Mutex
	heard    time.Time // last request of the program
	deadline time.Time
	timer    *time.Timer
	streams  int // open streams of events
	ending   bool
	why      string // reason of the end
	failure  error  // result of closing the owner
}

const (
	// brokenTTL is the TTL after a program's stream of events broke, which usually means that the
	// program has died.
	brokenTTL = time.Second
	// closeTimeout bounds closing an owner, after its promises have ended.
	closeTimeout = 5 * time.Second
)

func (s *session) begin() {
	s.timer = time.AfterFunc(s.ttl, s.expire)
	s.touch()
}

// touch restarts the TTL. It returns false if the session is ending.
func (s *session) touch() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending {
		return false
	}
	s.heard = time.Now()
	s.deadline = s.heard.Add(s.ttl)
	s.timer.Reset(s.ttl)
	return true
}

func (s *session) opened() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams++
}

// broke shortens the TTL if the last stream of events broke.
func (s *session) broke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams--
	if soon := time.Now().Add(brokenTTL); s.streams == 0 && !s.ending && soon.Before(s.deadline) {
		s.deadline = soon
		s.timer.Reset(brokenTTL)
	}
}

// expire ends the session, unless a request came while the timer fired.
func (s *session) expire() {
	s.mu.Lock()
	late := !time.Now().Before(s.deadline)
	silent := time.Since(s.heard)
	s.mu.Unlock()
	if late {
		s.end("the program was silent for " + silent.Round(time.Millisecond).String())
	}
}

// end starts to close the owner, in a goroutine that Agent.Close waits for.
func (s *session) end(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending {
		return
	}
	s.ending, s.why = true, why
	s.timer.Stop()
	close(s.over)
	s.agent.running.Go(s.close)
}

func (s *session) close() {
	defer close(s.gone)
	defer s.agent.remove(s)
	failpoint.Here("agent/before-closing")
	log := s.agent.cfg.Logger.With("namespace", s.namespace, "owner", s.owner.Name(), "why", s.why)
	ctx, cancel := context.WithTimeout(s.agent.closing, s.agent.cfg.MaxPromise+closeTimeout)
	defer cancel()
	if s.failure = s.owner.Close(ctx); s.failure != nil {
		log.Warn("an owner was closed without releasing its leases: they expire", "error", s.failure)
		return
	}
	log.Info("an owner was closed")
}

func (s *session) document() ownerDocument {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ownerDocument{
		Namespace: string(s.namespace), Name: string(s.owner.Name()), Addr: s.addr, Leases: len(s.owner.Leases()), Suspended: s.owner.Status().Suspended,
		SilentMS: time.Since(s.heard).Milliseconds(), TTLMS: s.ttl.Milliseconds(),
	}
}

// leave serves DELETE /v1/owners/{id}. It responds when all leases are released.
func (a *Agent) leave(_ http.ResponseWriter, r *http.Request) (any, error) {
	s, err := a.known(r)
	if err != nil {
		return nil, err
	}
	s.end("the program leaves")
	select {
	case <-s.gone:
		failpoint.Here("agent/left-before-answer")
	case <-r.Context().Done():
		return nil, leasehold.Errorf("leave", leasehold.ErrUnavailable, "", "%w", r.Context().Err())
	}
	return struct{}{}, s.failure
}
