package main

import (
	"context"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

// PRS's experiment: 250 servers, of which a rack of 50 is reset, and 1,000
// frontends. Every 50 frontends share a lookup, as those of one computer would.
const (
	racks         = 5
	rackServers   = 50
	frontendCount = 1000
	lookupCount   = 20
	think         = 500 * time.Millisecond // between two operations of a frontend
)

// resets are what frontends saw.
type resets struct {
	normal, dies, back []time.Duration // what operations took
	failed             int
}

// reset takes a rack away and brings it back.
func reset(ctx context.Context, r *report.Run) (*resets, error) {
	s, err := newSite(ctx, racks, rackServers, lookupCount)
	if err != nil {
		return nil, err
	}
	defer s.close()
	r.Step("the rack: %d servers are there", racks*rackServers)
	out := &resets{}
	phase := func(do func() error, calm time.Duration) ([]time.Duration, error) {
		crew := s.front.work(ctx, frontendCount, think, false)
		defer crew.stop()
		if err := do(); err != nil {
			return nil, err
		}
		_ = proc.Pause(ctx, calm) // the end of the run is reported below
		done, failed := crew.end()
		out.failed += failed
		var took []time.Duration
		for _, o := range done {
			took = append(took, o.took)
		}
		slices.Sort(took)
		return took, ctx.Err()
	}
	if out.normal, err = phase(func() error { return nil }, 8*time.Second); err != nil {
		return nil, err
	}
	r.Step("the rack: %d operations without trouble", len(out.normal))
	out.dies, err = phase(func() error {
		s.kill()
		return s.whole(ctx, (racks-1)*rackServers)
	}, 2*time.Second)
	if err != nil {
		return nil, err
	}
	r.Step("the rack: it died, and all keys are served again")
	out.back, err = phase(func() error {
		if err := s.bring(ctx, 0); err != nil {
			return err
		}
		return s.whole(ctx, racks*rackServers)
	}, 4*time.Second)
	r.Step("the rack: it is back")
	return out, err
}

// cdf is the share of operations that took no longer than so many seconds.
func cdf(name string, sorted []time.Duration) report.Curve {
	c := report.Curve{Name: name}
	for _, p := range []float64{0.01, 0.1, 0.25, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 0.999, 1} {
		c.Points = append(c.Points, report.Point{X: max(1e-5, report.Quantile(sorted, p).Seconds()), Y: p})
	}
	return c
}
