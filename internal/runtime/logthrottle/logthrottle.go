// Package logthrottle limits the rate of repeated log messages.
package logthrottle

import (
	"sync"
	"time"
)

// A Throttle selects the events to log: the first of a subject, then one per interval. It keeps all
// subjects, so their number must be bounded. It is safe for concurrent use.
type Throttle[S comparable] struct {
	every time.Duration
	mu    sync.Mutex
	last  map[S]*entry
}

type entry struct {
	at         time.Time // of the last logged event
	suppressed int       // events since then
}

// New returns a throttle with an interval.
func New[S comparable](every time.Duration) *Throttle[S] {
	return &Throttle[S]{every: every, last: make(map[S]*entry)}
}

// Allow reports whether to log n events of a subject, and the number of suppressed events since the last logged
// one.
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
