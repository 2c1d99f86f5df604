package chaos

import (
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/lab/chaos/cluster"
)

// A Snapshot is how a run is doing.
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

// say says what is done from now on.
func (r *run) say(doing string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doing = doing
	r.tellProgress()
}

// tellProgress needs the lock.
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

// afterwards is about how long a run takes beyond its time: for the rest of the last storm, and
// until callers have heard of it.
const afterwards = stormTime + lastWords

// lastWords is how long callers have to hear of the last losses.
const lastWords = cluster.Stale + time.Second

// sayEvery is how often progress is told when nothing happens.
const sayEvery = time.Second

// keepSaying tells it, until it is stopped.
func (r *run) keepSaying() (stop func()) {
	done, again := make(chan struct{}), time.NewTicker(sayEvery)
	var saying sync.WaitGroup
	saying.Go(func() {
		defer again.Stop()
		for {
			select {
			case <-again.C:
				r.mu.Lock()
				r.tellProgress()
				r.mu.Unlock()
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		saying.Wait()
	}
}
