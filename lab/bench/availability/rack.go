package availability

import (
	"context"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/managers"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

// PRS's experiment: 250 servers, of which a rack of 50 is reset, and 1,000 frontends. Every 50
// frontends share a lookup, like those of one machine.
const (
	racks         = 5
	rackServers   = 50
	frontendCount = 1000
	lookupCount   = 20
	think         = 500 * time.Millisecond // between two operations of a frontend
)

type resets struct {
	normal, dies, back, supervised []time.Duration // durations of operations
}

// reset resets a rack that is one process, and kills one whose servers are a supervised process each.
func reset(ctx context.Context, r *report.Run, group *managers.Group) (out *resets, err error) {
	s, err := newSite(ctx, group, siteConfig{namespace: "racks", racks: racks, servers: rackServers, lookups: lookupCount})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	r.Step("the rack: %d servers are running", racks*rackServers)
	out = &resets{}
	if out.normal, err = s.operations(ctx, 8*time.Second, func() error { return nil }); err != nil {
		return nil, err
	}
	r.Step("the rack: %d operations without trouble", len(out.normal))
	dies := func() error {
		s.killRack(0)
		return s.waitForOwners(ctx, (racks-1)*rackServers)
	}
	if out.dies, err = s.operations(ctx, 2*time.Second, dies); err != nil {
		return nil, err
	}
	r.Step("the rack was killed, and all keys are served again")
	returns := func() error {
		if err := s.startRack(ctx, 0); err != nil {
			return err
		}
		return s.waitForOwners(ctx, racks*rackServers)
	}
	if out.back, err = s.operations(ctx, 4*time.Second, returns); err != nil {
		return nil, err
	}
	r.Step("the rack is back")
	s.racks[0].Close() // the next one is supervised
	s.processes, s.supervised = rackServers, true
	if err := returns(); err != nil {
		return nil, err
	}
	r.Step("the rack: %d supervised processes are running", rackServers)
	out.supervised, err = s.operations(ctx, 2*time.Second, dies)
	return out, err
}

// operations returns the durations of the operations of all frontends during a phase and for some time after, sorted.
func (s *site) operations(ctx context.Context, calm time.Duration, phase func() error) (took []time.Duration, err error) {
	workers := s.front.work(ctx, frontendCount, think, false)
	defer workers.end()
	if err := phase(); err != nil {
		return nil, err
	}
	_ = proc.Pause(ctx, calm) // a canceled run is reported below
	done, _ := workers.end()
	for _, o := range done {
		took = append(took, o.took)
	}
	slices.Sort(took)
	return took, ctx.Err()
}
