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
	Of      time.Duration // approximate duration; 0: it depends on the number of faults
	Storms  int
	Faults  int
	Enough  int // final number of faults; 0: no limit
	Broken  bool
	Doing   string
}

// setPhase sets the phase of the run.
func (r *run) setPhase(doing string) {
	r.count(func(*Report) {
		r.doing = doing
		r.reportProgress()
	})
}

// reportProgress calls the callback. The caller holds the lock.
func (r *run) reportProgress() {
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
	lossTime    = cluster.Stale + time.Second // until callers have received the last losses
	afterwards  = stormTime + lossTime        // approximate time of a run after For
	reportEvery = time.Second                 // interval of progress reports
)

// keepReporting reports progress periodically, until it is stopped.
func (r *run) keepReporting() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var reporting sync.WaitGroup
	reporting.Go(func() {
		for proc.Pause(ctx, reportEvery) {
			r.count(func(*Report) { r.reportProgress() })
		}
	})
	return func() {
		cancel()
		reporting.Wait()
	}
}
