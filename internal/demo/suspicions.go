package demo

import (
	"sync"
	"time"
)

// suspicions are answers that know nothing of what had been acknowledged, though
// no loss that covers the key had been heard of. The notice may be on its way:
// the answer may come from the server that has the key now before the lookup
// knows of that. If it does not come, the loss was silent.
//
// They may be used from many goroutines at once.
type suspicions struct {
	mu     sync.Mutex
	since  map[*user]time.Time // at most one of each user
	proven uint64
}

// noticePatience is how long the notice of a loss may take. It is some hundred
// times what it takes, because the processes of a demo compete for few
// processors.
const noticePatience = 3 * time.Second

func newSuspicions() *suspicions { return &suspicions{since: make(map[*user]time.Time)} }

// suspect begins to wait for a notice, unless that has just come.
func (s *suspicions) suspect(u *user, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.lost.Load() {
		return // explain came first
	}
	if _, waits := s.since[u]; !waits {
		s.since[u] = now
	}
}

// explain is for a notice that has come. The user has been marked before.
func (s *suspicions) explain(u *user) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.since, u)
}

// open is how many notices are still waited for.
func (s *suspicions) open(now time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prove(now)
	return len(s.since)
}

// silent is how many losses there were without a notice.
func (s *suspicions) silent(now time.Time) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prove(now)
	return s.proven
}

func (s *suspicions) prove(now time.Time) {
	for u, since := range s.since {
		if now.Sub(since) >= noticePatience {
			delete(s.since, u)
			s.proven++
		}
	}
}
