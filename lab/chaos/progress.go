package chaos

import (
	"context"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/lab/chaos/cluster"
	"github.com/leasehold-dev/leasehold/server/proc"
)

// A Snapshot is the progress of a run.
type Snapshot struct {
	Store   cluster.Shape
	Elapsed time.Duration
	Of      time.Duration // about how long it takes; 0: that depends on faults
	Storms  int
	Faults  int
	Enough  int // faults; 0: any number
	Broken  bool
	Doing   string
}

// say sets the phase of the run.
func (r *run) say(doing string) {
	r.count(func(*Report) {
		r.doing = doing
		r.tellProgress()
	})
}

// tellProgress is called with the lock.
func (r *run) tellProgress() {
	s := Snapshot{
		Store: r.cfg.Shape, Elapsed: time.Since(r.begin), Storms: r.report.Storms,
		Faults: r.report.Faults, Enough: r.cfg.Faults, Broken: r.book.Broken(), Doing: r.doing,
	}
	if r.cfg.For > 0 {
		s.Of = r.cfg.For + afterwards
	}
	r.progress(s)
}

const (
	lastWords  = cluster.Stale + time.Second // until callers have received the last losses
	afterwards = stormTime + lastWords       // that a run takes beyond its time, about
	sayEvery   = time.Second                 // interval of progress when nothing happens
)

// keepSaying reports progress periodically, until it is stopped.
func (r *run) keepSaying() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var saying sync.WaitGroup
	saying.Go(func() {
		for proc.Pause(ctx, sayEvery) {
			r.count(func(*Report) { r.tellProgress() })
		}
	})
	return func() {
		cancel()
		saying.Wait()
	}
}
