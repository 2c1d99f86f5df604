package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/loadgen"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

const namespace = "scale"

// A testbed is a group of managers and its clients.
type testbed struct {
	size
	run     *report.Run
	group   *proc.Managers
	manager *proc.Manager // the leader
	clients *loadgen.Clients
	empty   float64                   // the manager's memory before anybody came
	before  map[*proc.Manager]float64 // seconds of a core that they used before they were restarted
}

func newTestbed(ctx context.Context, r *report.Run, s size) (_ *testbed, err error) {
	t := &testbed{size: s, run: r, before: map[*proc.Manager]float64{}}
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	if t.group, err = proc.StartManagers(ctx, proc.ManagersConfig{Count: max(1, s.managers)}); err != nil {
		return nil, err
	}
	if t.manager, err = t.group.Leader(ctx); err != nil {
		return nil, err
	}
	if err := t.group.CreateNamespace(ctx, s.config()); err != nil {
		return nil, err
	}
	used, err := t.manager.Usage()
	if err != nil {
		return nil, err
	}
	t.empty = used.Memory
	t.clients, err = loadgen.StartClients(ctx, namespace, t.asked(), t.followed())
	return t, err
}

// asked are the managers that owners ask for leases: the leader, or all if that will change.
func (t *testbed) asked() []string {
	if t.rollout {
		return t.group.Addrs()
	}
	return []string{t.manager.Addr}
}

// followed are the managers that lookups follow: the standbys, if there are any, or all if
// those will change.
func (t *testbed) followed() (addrs []string) {
	if t.rollout {
		return t.group.Addrs()
	}
	for _, m := range t.group.All {
		if m != t.manager || len(t.group.All) == 1 {
			addrs = append(addrs, m.Addr)
		}
	}
	return addrs
}

func (t *testbed) close() {
	if t.clients != nil {
		t.clients.Close()
	}
	if t.group != nil {
		t.group.Close()
	}
}

// settled waits until there are so many, every key has its owner, and every lookup
// has proof of the newest table.
func (t *testbed) settled(ctx context.Context, owners, lookups int) (loadgen.Counts, error) {
	var now loadgen.Counts
	err := proc.Until(ctx, 250*time.Millisecond, func(ctx context.Context) error {
		status, err := t.manager.Namespace(ctx, namespace)
		if err != nil {
			return err
		}
		if now, err = t.clients.Look(); err != nil {
			return err
		}
		switch {
		case status.GetOwners() != uint32(owners) || status.GetVacant() > 0 || now.Holding != owners:
			return fmt.Errorf("%d owners of %d, of which %d hold something; %d ranges have none", status.GetOwners(), owners, now.Holding, status.GetVacant())
		case now.Share < 1-1e-9 || now.Share > 1+1e-9:
			return fmt.Errorf("the owners hold %v of all keys", now.Share)
		case now.Proven != lookups || now.Lowest < status.GetLsn():
			return fmt.Errorf("%d lookups of %d have proof, of change %d at least; the newest is %d", now.Proven, lookups, now.Lowest, status.GetLsn())
		}
		return nil
	})
	return now, err
}

// A load is what the leader does, in a second.
type load struct {
	CPU   float64 // of a core, in percent
	All   float64 // the same of all managers together
	Bytes float64 // in both directions, of all managers
	Peak  float64 // the most bytes in one second
}

// used is what each manager has used, the leader first.
func (t *testbed) used() (all []proc.Usage, err error) {
	for _, m := range t.group.All {
		u, err := m.Usage()
		if err != nil {
			return nil, err
		}
		u.CPU += t.before[m]
		if m == t.manager {
			all = slices.Insert(all, 0, u)
		} else {
			all = append(all, u)
		}
	}
	return all, nil
}

// during measures the leader while something is done.
func (t *testbed) during(do func() error) (load, error) {
	counts, err := t.clients.Look()
	if err != nil {
		return load{}, err
	}
	before, err := t.used()
	if err != nil {
		return load{}, err
	}
	begun := time.Now()
	if err := do(); err != nil {
		return load{}, err
	}
	seconds := time.Since(begun).Seconds()
	after, err := t.used()
	if err != nil {
		return load{}, err
	}
	now, err := t.clients.Look()
	l := load{Bytes: float64(now.In+now.Out-counts.In-counts.Out) / seconds, Peak: float64(now.Peak)}
	l.CPU = 100 * (after[0].CPU - before[0].CPU) / seconds
	for i := range after {
		l.All += 100 * (after[i].CPU - before[i].CPU) / seconds
	}
	return l, err
}

// quiet measures the leader while nothing happens, in windows.
func (t *testbed) quiet(ctx context.Context, rounds int) (all []load, err error) {
	windows, _ := t.windows(rounds)
	for i := range windows {
		l, err := t.during(func() error { return t.wait(ctx) })
		if err != nil {
			return all, err
		}
		all = append(all, l)
		t.run.Step("%s: quiet, %d of %d: %.1f %% of a core", t.name, i+1, windows, l.CPU)
	}
	if leader, err := t.group.Leader(ctx); err != nil || leader != t.manager {
		return all, errors.Join(errors.New("another manager leads than in the beginning"), err)
	}
	return all, nil
}

// wait lets a window pass.
func (t *testbed) wait(ctx context.Context) error {
	_, window := t.windows(1)
	return proc.Pause(ctx, window)
}
