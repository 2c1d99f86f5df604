package agent

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/failpoint"
	"github.com/leasehold-dev/leasehold/owner"
)

// A session is a program that has joined, until it leaves or is silent for too
// long: a program that is dead must not be an owner for ever.
type session struct {
	agent     *Agent
	id        string
	namespace leasehold.Namespace
	addr      string
	ttl       time.Duration
	reported  bool // the program reports its load
	owner     *owner.Owner
	feed      feed

	over chan struct{} // closed when it begins to end
	gone chan struct{} // closed when the owner has been closed

	mu       sync.Mutex
	heard    time.Time // of the program
	deadline time.Time
	timer    *time.Timer
	streams  int // of events that are open
	ending   bool
	why      string // it ends
	failure  error  // of closing the owner
}

const (
	// brokenPatience is for how long a program may be silent whose stream of events
	// broke. It may have died, whose connections the system closes at once.
	brokenPatience = time.Second
	// closePatience is how long closing an owner may take, besides the promises that
	// it waits for.
	closePatience = 5 * time.Second
)

// begin starts to wait for the program's silence.
func (s *session) begin() {
	s.timer = time.AfterFunc(s.ttl, s.expire)
	s.touch()
}

// touch notes that the program lives. It reports false if that comes too late.
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

// opened notes that the program follows its events.
func (s *session) opened() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams++
}

// broke shortens the wait for a program whose last stream broke.
func (s *session) broke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams--
	if soon := time.Now().Add(brokenPatience); s.streams == 0 && !s.ending && soon.Before(s.deadline) {
		s.deadline = soon
		s.timer.Reset(brokenPatience)
	}
}

// expire ends the session, unless the program was heard of while the timer went off.
func (s *session) expire() {
	s.mu.Lock()
	late := !time.Now().Before(s.deadline)
	silent := time.Since(s.heard)
	s.mu.Unlock()
	if late {
		s.end("the program was not heard of for " + silent.Round(time.Millisecond).String())
	}
}

// end begins to close the owner, on a goroutine that the agent waits for. It does
// not wait itself; gone says when that is done.
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
	defer s.agent.forget(s)
	failpoint.Here("agent/before-closing")
	log := s.agent.cfg.Logger.With("namespace", s.namespace, "owner", s.owner.Name(), "why", s.why)
	ctx, cancel := context.WithTimeout(s.agent.closing, s.agent.cfg.MaxPromise+closePatience)
	defer cancel()
	if s.failure = s.owner.Close(ctx); s.failure != nil {
		log.Warn("an owner was closed without a goodbye: its leases run out", "error", s.failure)
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

// leave answers DELETE /v1/owners/{id}, when all leases are back. That the session
// ends already, for another reason, is as good.
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
		return nil, leasehold.Errorf("leave", leasehold.Unavailable, "", "%w", r.Context().Err())
	}
	return struct{}{}, s.failure
}
