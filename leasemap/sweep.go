package leasemap

import (
	"context"
	"time"
)

// A pass over all shards takes as long as values last, between these, in so many steps.
const (
	shortestPass = 8 * time.Second
	longestPass  = time.Minute
	sweepSteps   = 64
)

// sweepAlways removes what has expired, some shards at a time.
func (m *Map[V]) sweepAlways(ctx context.Context) {
	pass := longestPass
	if m.cfg.TTL > 0 {
		pass = min(max(m.cfg.TTL, shortestPass), longestPass)
	}
	tick := time.NewTicker(pass / sweepSteps)
	defer tick.Stop()
	for step := 0; ; step = (step + 1) % sweepSteps {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		const each = shardCount / sweepSteps
		for i := step * each; i < (step+1)*each; i++ {
			m.shards[i].sweep(m)
		}
	}
}

// Sweep removes all that has expired. It looks at every value, and holds up operations
// for no longer than it takes to look at those of a shard, one of 4,096. A map that Join
// has made does this by itself.
func (m *Map[V]) Sweep() {
	for i := range m.shards {
		m.shards[i].sweep(m)
	}
}

func (s *shard[V]) sweep(m *Map[V]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := m.now()
	for name, e := range s.entries {
		if !e.expired(now) || !e.try() {
			continue // it lasts, or is being used
		}
		if e.expired(now) {
			s.noteLocked(m.cfg.Key(name), name) // or the next owner would show it again
			m.remove(s, name, e)
		}
		e.taken.Store(false)
		e.next()
	}
}
