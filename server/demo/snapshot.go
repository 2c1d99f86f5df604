package demo

import (
	"context"
	"sync"
	"time"

	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
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

// observeEvery is the interval of snapshots.
const observeEvery = 250 * time.Millisecond

func (o *observer) run(ctx context.Context) {
	for pause(ctx, observeEvery) {
		led, err := o.cluster.admin.leader(ctx, 0)
		if m := o.cluster.managerAt(led.leader); err != nil || m != nil && m.Incarnation() == 0 {
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

// sharesOf adds up the shares of the sessions of each name: there may be one that was killed
// and its successor.
func sharesOf(owners []*leaseholdv1.OwnerStatus) map[string]float64 {
	shares := make(map[string]float64)
	for _, o := range owners {
		shares[o.GetHolder().GetOwner()] += o.GetShare()
	}
	return shares
}

// fill adds what was last observed to a snapshot.
func (o *observer) fill(s *Snapshot) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.cluster
	if o.led.leader != "" {
		s.Leader, s.Term = c.nameOf(o.led.leader), uint64(o.led.term)
	}
	for i, m := range c.managers {
		if s.Dashboard == "" && m.Incarnation() > 0 {
			s.Dashboard = c.page(i)
		}
		s.Managers = append(s.Managers, Participant{Name: m.Name, Alive: m.Incarnation() > 0})
	}
	for _, m := range c.owners {
		s.Owners = append(s.Owners, Participant{Name: m.Name, Alive: m.Incarnation() > 0, Share: o.shares[m.Name]})
	}
	s.Events = c.journal.events()
}
