// Package logthrottle limits how often a log repeats itself.
package logthrottle

import (
	"sync"
	"time"
)

// A Throttle decides which events are logged: the first about a subject, and then one
// in each interval. It remembers all subjects, so their number must be bounded. It is
// safe for concurrent use.
type Throttle[S comparable] struct {
	every time.Duration
	mu    sync.Mutex
	last  map[S]*entry
}

type entry struct {
	at         time.Time // when it was logged last
	suppressed int       // events since
}

// New returns a throttle with an interval.
func New[S comparable](every time.Duration) *Throttle[S] {
	return &Throttle[S]{every: every, last: make(map[S]*entry)}
}

// Allow reports whether to log n events about a subject, and how many were suppressed
// since the last that was logged.
func (t *Throttle[S]) Allow(subject S, n int) (suppressed int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.last[subject]
	if e == nil {
		e = new(entry)
		t.last[subject] = e
	}
	now := time.Now()
	if !e.at.IsZero() && now.Sub(e.at) < t.every {
		e.suppressed += n
		return 0, false
	}
	suppressed, e.at, e.suppressed = e.suppressed, now, 0
	return suppressed, true
}
