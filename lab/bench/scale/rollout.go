package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/loadgen"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
)

// roll restarts all processes in groups, as on the evening of Centrifuge's figure 13: a manager
// and its share of the owners and of the lookups, then the next. Whoever leads is first.
func (t *testbed) roll(ctx context.Context) error {
	left := slices.Clone(t.group.All)
	groups := len(left)
	for i := range groups {
		leader, err := t.group.Leader(ctx)
		if err != nil {
			return err
		}
		next := max(0, slices.Index(left, leader))
		manager := left[next]
		left = slices.Delete(left, next, next+1)
		var (
			both sync.WaitGroup
			end  error
		)
		both.Go(func() { end = t.again(ctx, manager) })
		_, err = t.clients.Restart(loadgen.Restart{
			Part: i, Parts: groups, Together: t.together, Within: t.restarts / time.Duration(groups),
		})
		both.Wait()
		if err := errors.Join(err, end); err != nil {
			return err
		}
		t.run.Step("%s: group %d of %d was restarted", t.name, i+1, groups)
	}
	var err error
	t.manager, err = t.group.Leader(ctx)
	return err
}

// again restarts a manager, and waits until it knows of a leader. What it takes to end is not
// counted.
func (t *testbed) again(ctx context.Context, m *proc.Manager) error {
	used, err := m.Usage()
	if err != nil {
		return err
	}
	t.before[m] += used.CPU
	if err := errors.Join(m.Terminate(ctx), m.Start()); err != nil {
		return err
	}
	return proc.Until(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		status, err := m.Status(ctx)
		if err == nil && status.GetLeader() == "" {
			err = errors.New("the manager that was restarted knows of no leader")
		}
		return err
	})
}
