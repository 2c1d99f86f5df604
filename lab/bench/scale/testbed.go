package scale

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/loadgen"
	"github.com/leasehold-dev/leasehold/lab/bench/managers"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
	process "github.com/leasehold-dev/leasehold/server/proc"
)

const namespace = "scale"

type testbed struct {
	size
	run    *report.Run
	group  *managers.Group
	leader *managers.Manager
	// clients are a process of owners and one of lookups, so that the traffic of lookups does not
	// delay renewals, as on separate machines.
	clients proc.Group
	empty   float64 // the leader's memory without clients

	proc.Cleanup
}

func newTestbed(ctx context.Context, r *report.Run, s size) (t *testbed, err error) {
	t = &testbed{size: s, run: r}
	defer func() {
		if err != nil {
			t.Close()
		}
	}()
	if t.group, err = managers.StartWith(ctx, r.Dir, process.ManagersConfig{Count: s.managers}, s.flags()...); err != nil {
		return nil, err
	}
	t.Add(t.group.Close)
	if t.leader, err = t.group.Leader(ctx); err != nil {
		return nil, err
	}
	if err := t.group.CreateNamespace(ctx, s.config()); err != nil {
		return nil, err
	}
	used, err := proc.UsageOf(t.leader.Pid())
	if err != nil {
		return nil, err
	}
	t.empty = used.Memory
	t.clients, err = loadgen.StartClients(ctx, 2, loadgen.ClientsConfig{
		Namespace: namespace, Managers: t.lookupManagers(), Leader: t.leader.Member.Addr,
	})
	if err != nil {
		return nil, err
	}
	t.Add(t.clients.Close)
	return t, nil
}

// lookupManagers returns the managers that lookups follow: the standbys, if there are any,
// or all if they will change.
func (t *testbed) lookupManagers() (addrs []string) {
	for _, m := range t.group.All {
		if m != t.leader || t.managers == 1 || t.outage > 0 || t.soak != "" {
			addrs = append(addrs, m.Member.Addr)
		}
	}
	return addrs
}

// settle waits until all owners and lookups are present, every key has an owner, and every
// lookup has proof of the newest table.
func (t *testbed) settle(ctx context.Context, lookups int) (now loadgen.Counts, err error) {
	err = proc.Until(ctx, 250*time.Millisecond, func(ctx context.Context) error {
		status, err := t.group.Namespace(ctx, namespace)
		if err != nil {
			return err
		}
		if now, err = loadgen.Look(t.clients); err != nil {
			return err
		}
		switch {
		case status.GetOwners() != uint32(t.owners) || status.GetVacant() > 0 || now.Holding != t.owners:
			return fmt.Errorf("%d owners of %d, of which %d hold ranges; %d ranges have no owner", status.GetOwners(), t.owners, now.Holding, status.GetVacant())
		case now.Share < 1-1e-9 || now.Share > 1+1e-9:
			return fmt.Errorf("the owners hold %v of all keys", now.Share)
		case now.Proven != lookups || now.Lowest < status.GetLsn():
			return fmt.Errorf("%d lookups of %d have proof, at least of change %d; the newest is %d", now.Proven, lookups, now.Lowest, status.GetLsn())
		}
		return nil
	})
	return now, err
}

// A load is the resource use of managers, per second.
type load struct {
	CPU   float64 // of the leader, percent of a core
	All   float64 // the same of all managers together
	Bytes float64 // in both directions, of all managers
}

// used returns the resource use of each manager, the leader first.
func (t *testbed) used() (all []proc.Usage, err error) {
	for _, m := range t.group.All {
		u, err := proc.UsageOf(m.Pid())
		if err != nil {
			return nil, err
		}
		if m == t.leader {
			all = slices.Insert(all, 0, u)
		} else {
			all = append(all, u)
		}
	}
	return all, nil
}

// during measures the managers during a call.
func (t *testbed) during(do func() error) (l load, err error) {
	counts, err := loadgen.Look(t.clients)
	if err != nil {
		return l, err
	}
	before, err := t.used()
	if err != nil {
		return l, err
	}
	begun := time.Now()
	if err := do(); err != nil {
		return l, err
	}
	seconds := time.Since(begun).Seconds()
	after, err := t.used()
	if err != nil {
		return l, err
	}
	now, err := loadgen.Look(t.clients)
	l = load{Bytes: float64(now.Bytes-counts.Bytes) / seconds}
	l.CPU = 100 * (after[0].CPU - before[0].CPU).Seconds() / seconds
	for i := range after {
		l.All += 100 * (after[i].CPU - before[i].CPU).Seconds() / seconds
	}
	return l, err
}

type finding struct {
	size
	memory    float64 // of the leader, in bytes for each client
	total     float64 // in bytes
	quiet     []load
	restart   load
	restarted time.Duration  // how long all restarts took
	counts    loadgen.Counts // at the end
	wrong     error          // why the table is not complete at the end
}

func measure(ctx context.Context, r *report.Run, s size) (*finding, error) {
	f := &finding{size: s}
	t, err := newTestbed(ctx, r, s)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	if err := t.start(ctx); err != nil {
		return nil, err
	}
	if err := t.measureQuiet(ctx, f, r.Rounds); err != nil {
		return nil, err
	}
	if s.restarts > 0 {
		begun := time.Now()
		f.restart, err = t.during(func() error { return t.restart(s.restarts) })
		if err != nil {
			return nil, err
		}
		f.restarted = time.Since(begun)
		r.Step("%s: all restarted: %.0f %% of a core", s.name, f.restart.CPU)
	}
	f.counts, f.wrong = t.settle(ctx, s.lookups)
	if f.wrong != nil {
		r.Step("%s: not all keys are held at the end: %v", s.title, f.wrong)
	}
	return f, ctx.Err()
}

// start starts owners and then lookups with their table, and waits until they have settled.
func (t *testbed) start(ctx context.Context) error {
	t.run.Step("%s: starting %d owners and %d lookups", t.name, t.owners, t.lookups)
	if err := t.clients[0].Call("Grow", loadgen.Growth{Owners: t.owners, Within: t.grow / 2}, nil); err != nil {
		return err
	}
	if _, err := t.settle(ctx, 0); err != nil {
		return fmt.Errorf("%d owners do not settle: %w", t.owners, err)
	}
	status, err := t.group.Namespace(ctx, namespace)
	if err != nil {
		return err
	}
	if err := t.growLookups(status.GetLsn()); err != nil {
		return err
	}
	_, err = t.settle(ctx, t.lookups)
	return err
}

func (t *testbed) growLookups(lsn uint64) error {
	return t.clients[1].Call("Grow", loadgen.Growth{Lookups: t.lookups, Within: t.grow / 2, LSN: lsn}, nil)
}

// restart restarts all clients within a time.
func (t *testbed) restart(within time.Duration) error {
	_, err := proc.CallAll[struct{}](t.clients, "Restart", within)
	return err
}

// window is long enough for all owners to renew, and for almost all lookups to poll.
const window = 4 * time.Second

// measureQuiet measures the managers while nothing happens, in windows.
func (t *testbed) measureQuiet(ctx context.Context, f *finding, rounds int) error {
	if err := proc.Pause(ctx, window); err != nil {
		return err
	}
	for i := range rounds {
		l, err := t.during(func() error { return proc.Pause(ctx, window) })
		if err != nil {
			return err
		}
		f.quiet = append(f.quiet, l)
		t.run.Step("%s: quiet, %d of %d: %.1f %% of a core", t.name, i+1, rounds, l.CPU)
	}
	if leader, err := t.group.Leader(ctx); err != nil || leader != t.leader {
		return errors.Join(errors.New("the leader changed"), err)
	}
	used, err := t.used()
	if err != nil {
		return err
	}
	f.total, f.memory = used[0].Memory, (used[0].Memory-t.empty)/float64(t.leaderClients())
	return nil
}
