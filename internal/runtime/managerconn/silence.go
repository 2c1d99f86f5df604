package managerconn

import (
	"context"
	"sync"
	"time"
)

// A silence is what a manager has not answered yet.
//
// A connection may die without a word: a firewall forgets it, or a host loses
// its power. Everything that is sent then vanishes, while a new connection would
// work. gRPC's pings find that out after longer than a lease lasts, and cannot
// be made to find it out sooner. So the conversation is cut off, with its
// connection, at the third message to which nothing was heard, and that message
// goes out over a new one.
//
// The machines wait longer with each message that is not answered, and in
// proportion to the lease: the third leaves after a fifth of it. A manager may
// also be slow, and gets slower if all of its clients dial anew. So each cut that
// does not help doubles what the next one takes, until something is heard.
//
// Its methods may be called from many goroutines at once.
type silence struct {
	mu     sync.Mutex
	cancel context.CancelFunc // ends the conversation; nil if there is none
	cut    bool               // we have called it
	sent   int                // messages since anything was heard
	since  time.Time          // when the first of them was
	limit  int                // how many are too many
}

const (
	fewestUnanswered = 3
	mostUnanswered   = 4 * fewestUnanswered
	// shortestSilence keeps a lease so short that three messages are sent within
	// a round trip from cutting off what works.
	shortestSilence = 500 * time.Millisecond
)

// begin is called with how to end a new conversation, before its first message
// is sent.
func (s *silence) begin(cancel context.CancelFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancel, s.cut = cancel, false
	s.sent, s.since = 1, time.Now()
	s.limit = max(s.limit, fewestUnanswered)
}

// say counts another message, and ends the conversation if it is one too many.
// That also ends a call that is stuck in sending an earlier one.
func (s *silence) say() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel == nil || s.cut {
		return
	}
	if s.sent == 0 {
		s.since = time.Now()
	}
	s.sent++
	if s.sent < s.limit || time.Since(s.since) < shortestSilence {
		return
	}
	s.cut = true
	s.limit = min(2*s.limit, mostUnanswered)
	s.cancel()
}

// hear is called with whatever comes from the manager.
func (s *silence) hear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent, s.limit = 0, fewestUnanswered
}

// broken reports whether the conversation was cut off.
func (s *silence) broken() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cut
}

// end is called when the conversation is over, and reports whether it was cut
// off.
func (s *silence) end() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	cut := s.cut
	s.cancel, s.cut = nil, false
	return cut
}
