package demo

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// An Event is a line of the journal.
type Event struct {
	Number int           // from 1 on, without gaps
	At     time.Duration // into the demo
	Text   string
}

// A journal keeps the latest events. It may be used by many goroutines at once.
type journal struct {
	begin time.Time

	mu     sync.Mutex
	latest []Event
	last   int
}

const maxEvents = 64

func newJournal() *journal { return &journal{begin: time.Now()} }

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last++
	j.latest = append(j.latest, Event{j.last, time.Since(j.begin), fmt.Sprintf(format, args...)})
	if len(j.latest) > maxEvents {
		j.latest = slices.Delete(j.latest, 0, 1)
	}
}

func (j *journal) events() []Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.latest)
}
