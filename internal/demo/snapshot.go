package demo

import (
	"context"
	"sync"
	"time"

	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A Snapshot is how a demo stands. It is a value, and belongs to whoever gets
// it.
type Snapshot struct {
	Elapsed time.Duration // since callers began; 0 before that
	Of      time.Duration // how long it will be; 0 if that is open

	Leader   string // its name; empty if nobody leads
	Term     uint64
	Managers []Participant
	// Dashboard is where a manager that lives serves the page; empty if none does.
	Dashboard string
	Owners    []Participant

	PerSecond    float64       // requests that succeeded, lately
	Median, Slow time.Duration // what half of them took at most, and 99 of 100
	Report       Report        // so far

	Events []Event // the latest, oldest first
}

// A Participant is a manager or an owner.
type Participant struct {
	Name  string
	Alive bool
	Share float64 // of the keys, 0 to 1, of an owner
}

// An observer asks how things are, again and again.
type observer struct {
	cluster *cluster

	mu     sync.Mutex
	led    leadership
	shares map[string]float64
}

// observeEvery is how often.
const observeEvery = 250 * time.Millisecond

// run asks until the context ends.
func (o *observer) run(ctx context.Context) {
	for pause(ctx, observeEvery) {
		led, err := o.cluster.admin.leader(ctx, 0)
		if m := o.cluster.managerAt(led.leader); err != nil || m != nil && m.Life() == 0 {
			led = leadership{}
		}
		owners, err := o.cluster.admin.owners(ctx)
		o.mu.Lock()
		o.led = led
		if err == nil {
			o.shares = sharesOf(owners)
		}
		o.mu.Unlock()
	}
}

// sharesOf adds up what the sessions of each name hold: one that has died and
// one that waits for it may both be there.
func sharesOf(owners []*leaseholdv1.OwnerStatus) map[string]float64 {
	shares := make(map[string]float64)
	for _, o := range owners {
		shares[o.GetHolder().GetOwner()] += o.GetShare()
	}
	return shares
}

// fill puts what was last seen into a snapshot.
func (o *observer) fill(s *Snapshot) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.cluster
	if o.led.leader != "" {
		s.Leader, s.Term = c.nameOf(o.led.leader), uint64(o.led.term)
	}
	for i, m := range c.managers {
		if s.Dashboard == "" && m.Life() > 0 {
			s.Dashboard = c.page(i)
		}
		s.Managers = append(s.Managers, Participant{Name: m.Name, Alive: m.Life() > 0})
	}
	for _, m := range c.owners {
		s.Owners = append(s.Owners, Participant{Name: m.Name, Alive: m.Life() > 0, Share: o.shares[m.Name]})
	}
	s.Events = c.journal.events()
}
