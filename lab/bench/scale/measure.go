package main

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/loadgen"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

// A finding is what became of one size.
type finding struct {
	size
	memory float64 // of the leader, in bytes for each client
	total  float64 // in bytes
	all    float64 // of all managers, in bytes
	quiet  []load
	bare   []float64 // percents of a core of a server that does nothing but answer
	// ownersRestart and lookupsRestart are the same if both were restarted at once.
	ownersRestart, lookupsRestart load
	restarted                     time.Duration // how long all restarts took
	complete                      time.Duration // from the first that joins until the table is complete
	steps                         []step
	counts                        loadgen.Counts // in the end
	spurious                      int64
	wrong                         error // why it is not whole in the end
}

// A step is how it was with fewer of them.
type step struct {
	clients       int
	quiet, failed load
	perMinute     float64 // failures
}

// measure finds out about one size.
func measure(ctx context.Context, r *report.Run, s size) (*finding, error) {
	f := &finding{size: s}
	if s.floor {
		var err error
		if f.bare, err = floor(ctx, s, r.Rounds); err != nil {
			return nil, err
		}
		r.Step("%s: bare gRPC: %.1f %% of a core", s.name, report.Summarise(f.bare).Median)
	}
	t, err := newTestbed(ctx, r, s)
	if err != nil {
		return nil, err
	}
	defer t.close()
	r.Step("%s: %d owners and %d lookups come", s.name, s.owners, s.lookups)
	if err := t.grow(ctx, f); err != nil {
		return nil, err
	}
	if f.quiet, err = t.quiet(ctx, r.Rounds); err != nil {
		return nil, err
	}
	used, err := t.used()
	if err != nil {
		return nil, err
	}
	f.total, f.memory = used[0].Memory, (used[0].Memory-t.empty)/float64(s.served())
	for _, u := range used {
		f.all += u.Memory
	}
	if err := t.restart(ctx, f); err != nil {
		return nil, err
	}
	f.counts, f.wrong = t.settled(ctx, s.owners, s.lookups)
	f.spurious = f.counts.Spurious()
	r.Step("%s: whole again", s.name)
	return f, ctx.Err()
}

// grow lets them come, and waits until they are quiet.
func (t *testbed) grow(ctx context.Context, f *finding) error {
	steps := max(1, t.steps)
	for i := 1; i <= steps; i++ {
		owners, lookups := t.owners*i/steps, t.lookups*i/steps
		growth := loadgen.Growth{Owners: owners, Together: t.together, Within: t.size.grow / 2, Poll: t.poll()}
		begun := time.Now()
		if _, err := t.clients.Grow(growth); err != nil {
			return err
		}
		growth.Lookups = lookups // once there is a table for them
		if _, err := t.clients.Grow(growth); err != nil {
			return err
		}
		if _, err := t.settled(ctx, owners, lookups); err != nil {
			return fmt.Errorf("%d owners and %d lookups do not settle: %w", owners, lookups, err)
		}
		f.complete = time.Since(begun)
		if t.failures > 0 {
			s, err := t.fail(ctx, owners, lookups)
			if err != nil {
				return err
			}
			f.steps = append(f.steps, s)
		}
	}
	return t.wait(ctx)
}

// fail measures a step: quiet, and with failures.
func (t *testbed) fail(ctx context.Context, owners, lookups int) (step, error) {
	s := step{clients: owners + lookups}
	share := float64(t.failures) * compressed / float64(lifetime)
	failures := loadgen.Restart{
		Crash: true, Within: t.failures, Together: t.together,
		Owners: max(1, int(share*float64(owners)+0.5)), Lookups: max(1, int(share*float64(lookups)+0.5)),
	}
	s.perMinute = float64(failures.Owners+failures.Lookups) / t.failures.Minutes()
	var err error
	if s.quiet, err = t.during(func() error { return t.wait(ctx) }); err != nil {
		return s, err
	}
	s.failed, err = t.during(func() error {
		begun := time.Now()
		if _, err := t.clients.Restart(failures); err != nil {
			return err
		}
		return proc.Pause(ctx, t.failures-time.Since(begun)) // few failures are over soon
	})
	if err != nil {
		return s, err
	}
	t.run.Step("%s: %d nodes, %.0f failures a minute: %.1f %% of a core", t.name, s.clients, s.perMinute, s.failed.CPU)
	_, err = t.settled(ctx, owners, lookups)
	return s, err
}

// restart restarts all clients.
func (t *testbed) restart(ctx context.Context, f *finding) (err error) {
	if t.restarts == 0 {
		return nil
	}
	begun := time.Now()
	if t.rollout {
		l, err := t.during(func() error { return t.roll(ctx) })
		l.CPU = l.All // each of them has led for a while
		f.ownersRestart, f.lookupsRestart, f.restarted = l, l, time.Since(begun)
		return err
	}
	all := loadgen.Restart{Owners: t.owners, Lookups: t.lookups, Together: t.together, Within: t.restarts}
	restart := func(r loadgen.Restart) (load, error) {
		return t.during(func() error {
			_, err := t.clients.Restart(r)
			return err
		})
	}
	if t.both {
		f.ownersRestart, err = restart(all)
		f.lookupsRestart, f.restarted = f.ownersRestart, time.Since(begun)
		t.run.Step("%s: restarted: %.0f %% of a core", t.name, f.ownersRestart.CPU)
		return err
	}
	owners, lookups := all, all
	owners.Lookups, lookups.Owners = 0, 0
	if f.ownersRestart, err = restart(owners); err != nil {
		return err
	}
	t.run.Step("%s: owners restarted: %.0f %% of a core", t.name, f.ownersRestart.CPU)
	f.lookupsRestart, err = restart(lookups)
	f.restarted = time.Since(begun)
	t.run.Step("%s: lookups restarted: %.0f %% of a core", t.name, f.lookupsRestart.CPU)
	return err
}
