package demo

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/server/proc"
)

// A Snapshot is the current state of a demo.
type Snapshot struct {
	Elapsed time.Duration // since callers began; 0 before that
	Of      time.Duration // its duration; 0 if that is open

	Leader   string // its name; empty if there is none
	Term     uint64
	Managers []Participant
	Owners   []Participant
	// Dashboard is the URL of a manager's page; empty if no manager runs.
	Dashboard string

	PerSecond    float64       // requests that succeeded recently
	Median, Slow time.Duration // p50 and p99 of their latency
	Report       Report        // so far

	Events []Event // the latest, oldest first
}

// A Participant is a manager or an owner.
type Participant struct {
	Name  string
	Alive bool
	Share float64 // of the keys, 0 to 1, of an owner
}

// An observer asks the managers for leader and shares continuously.
type observer struct {
	cluster *cluster

	mu     sync.Mutex
	led    leadership
	shares map[string]float64
}

const observeEvery = 250 * time.Millisecond

func (o *observer) run(ctx context.Context) {
	for proc.Pause(ctx, observeEvery) {
		led, err := o.cluster.leader(ctx, 0)
		if err != nil || led.Incarnation() == 0 {
			led = leadership{}
		}
		all, err := o.cluster.admin.Owners(ctx, string(namespace))
		o.mu.Lock()
		o.led = led
		if err == nil {
			o.shares = make(map[string]float64)
		}
		for _, session := range all.Owners { // a name may have one that was killed and its successor
			o.shares[session.Owner] += session.Share
		}
		o.mu.Unlock()
	}
}

func (o *observer) fill(s *Snapshot) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.cluster
	if o.led.Manager != nil {
		s.Leader, s.Term = o.led.Name, uint64(o.led.term)
	}
	for _, m := range c.managers.All {
		if s.Dashboard == "" && m.Incarnation() > 0 {
			s.Dashboard = c.page(m)
		}
		s.Managers = append(s.Managers, Participant{Name: m.Name, Alive: m.Incarnation() > 0})
	}
	for _, m := range c.owners {
		s.Owners = append(s.Owners, Participant{Name: m.Name, Alive: m.Incarnation() > 0, Share: o.shares[m.Name]})
	}
	s.Events = c.journal.events()
}

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
