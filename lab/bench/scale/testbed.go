package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/lab/bench/loadgen"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const namespace = "scale"

type testbed struct {
	size
	run     *report.Run
	group   *proc.Managers
	manager *proc.Manager // the leader
	clients *loadgen.Clients
	empty   float64                   // the manager's memory without clients
	before  map[*proc.Manager]float64 // processor seconds used before a manager's restarts

	proc.Cleanup
}

func newTestbed(ctx context.Context, r *report.Run, s size) (_ *testbed, err error) {
	t := &testbed{size: s, run: r, before: map[*proc.Manager]float64{}}
	defer func() {
		if err != nil {
			t.Close()
		}
	}()
	if t.group, err = proc.StartManagers(ctx, max(1, s.managers)); err != nil {
		return nil, err
	}
	t.Add(t.group.Close)
	if t.manager, err = t.group.Leader(ctx); err != nil {
		return nil, err
	}
	if err := t.group.CreateNamespace(ctx, s.config()); err != nil {
		return nil, err
	}
	used, err := proc.UsageOf(t.manager.Pid())
	if err != nil {
		return nil, err
	}
	t.empty = used.Memory
	if t.clients, err = loadgen.StartClients(ctx, namespace, t.ownerManagers(), t.lookupManagers()); err != nil {
		return nil, err
	}
	t.Add(t.clients.Close)
	return t, nil
}

// ownerManagers returns the managers that simulated owners request leases from: the leader, or all if the leader will
// change. In an outage owners use the library instead.
func (t *testbed) ownerManagers() []string {
	switch {
	case t.outage > 0:
		return nil
	case t.rollout:
		return t.group.Addrs()
	}
	return []string{t.manager.Member.Addr}
}

// lookupManagers returns the managers that lookups follow: the standbys, if there are any,
// or all if they will change.
func (t *testbed) lookupManagers() (addrs []string) {
	if t.rollout || t.outage > 0 {
		return t.group.Addrs()
	}
	for _, m := range t.group.All {
		if m != t.manager || len(t.group.All) == 1 {
			addrs = append(addrs, m.Member.Addr)
		}
	}
	return addrs
}

// waitUntilSettled waits until the given numbers are present, every key has an owner, and
// every lookup has proof of the newest table.
func (t *testbed) waitUntilSettled(ctx context.Context, owners, lookups int) (loadgen.Counts, error) {
	var now loadgen.Counts
	err := proc.Until(ctx, 250*time.Millisecond, func(ctx context.Context) error {
		status, err := t.group.Namespace(ctx, namespace)
		if err != nil {
			return err
		}
		if now, err = t.clients.Look(); err != nil {
			return err
		}
		switch {
		case status.GetOwners() != uint32(owners) || status.GetVacant() > 0 || now.Holding != owners:
			return fmt.Errorf("%d owners of %d, of which %d hold ranges; %d ranges have no owner", status.GetOwners(), owners, now.Holding, status.GetVacant())
		case now.Share < 1-1e-9 || now.Share > 1+1e-9:
			return fmt.Errorf("the owners hold %v of all keys", now.Share)
		case now.Proven != lookups || now.Lowest < status.GetLsn():
			return fmt.Errorf("%d lookups of %d have proof, at least of change %d; the newest is %d", now.Proven, lookups, now.Lowest, status.GetLsn())
		}
		return nil
	})
	return now, err
}

// A load is the resource use of the leader, per second.
type load struct {
	CPU   float64 // of a core, in percent
	All   float64 // the same of all managers together
	Bytes float64 // in both directions, of all managers
	Peak  float64 // the most bytes in one second
}

// used returns the resource use of each manager, the leader first.
func (t *testbed) used() (all []proc.Usage, err error) {
	for _, m := range t.group.All {
		u, err := proc.UsageOf(m.Pid())
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

// during measures the leader during a call.
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
		return all, errors.Join(errors.New("the leader changed"), err)
	}
	return all, nil
}

func (t *testbed) wait(ctx context.Context) error {
	_, window := t.windows(1)
	return proc.Pause(ctx, window)
}

type finding struct {
	size
	memory float64 // of the leader, in bytes for each client
	total  float64 // in bytes
	all    float64 // of all managers, in bytes
	quiet  []load
	bare   []float64 // the floor's, in percent of a core
	// ownersRestart and lookupsRestart are equal if both were restarted at once.
	ownersRestart, lookupsRestart load
	restarted                     time.Duration // how long all restarts took
	complete                      time.Duration // from the first join until the table is complete
	steps                         []step
	counts                        loadgen.Counts // at the end
	spurious                      int64
	wrong                         error // why the table is not complete at the end
}

type step struct {
	clients       int
	quiet, failed load
	perMinute     float64 // failures
}

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
	defer t.Close()
	r.Step("%s: starting %d owners and %d lookups", s.name, s.owners, s.lookups)
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
	f.total, f.memory = used[0].Memory, (used[0].Memory-t.empty)/float64(s.leaderClients())
	for _, u := range used {
		f.all += u.Memory
	}
	if err := t.restart(ctx, f); err != nil {
		return nil, err
	}
	f.counts, f.wrong = t.waitUntilSettled(ctx, s.owners, s.lookups)
	f.spurious = f.counts.Spurious()
	r.Step("%s: the table is complete again", s.name)
	return f, ctx.Err()
}

// grow starts owners and lookups, and waits until they have settled.
func (t *testbed) grow(ctx context.Context, f *finding) error {
	steps := max(1, t.steps)
	for i := 1; i <= steps; i++ {
		owners, lookups := t.owners*i/steps, t.lookups*i/steps
		growth := loadgen.Growth{Owners: owners, Together: t.together, Within: t.size.grow / 2, Poll: t.poll()}
		begun := time.Now()
		if _, err := t.clients.Grow(growth); err != nil {
			return err
		}
		growth.Lookups = lookups // once there is a table
		if _, err := t.clients.Grow(growth); err != nil {
			return err
		}
		if _, err := t.waitUntilSettled(ctx, owners, lookups); err != nil {
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

// fail measures a step, without and with failures.
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
		return proc.Pause(ctx, t.failures-time.Since(begun)) // few failures take less time
	})
	if err != nil {
		return s, err
	}
	t.run.Step("%s: %d nodes, %.0f failures a minute: %.1f %% of a core", t.name, s.clients, s.perMinute, s.failed.CPU)
	_, err = t.waitUntilSettled(ctx, owners, lookups)
	return s, err
}

func (t *testbed) restart(ctx context.Context, f *finding) (err error) {
	if t.restarts == 0 {
		return nil
	}
	begun := time.Now()
	if t.rollout {
		l, err := t.during(func() error { return t.restartGroups(ctx) })
		l.CPU = l.All // each of them led for some time
		f.ownersRestart, f.lookupsRestart, f.restarted = l, l, time.Since(begun)
		return err
	}
	restart := func(what string, owners, lookups int) (load, error) {
		l, err := t.during(func() error {
			_, err := t.clients.Restart(loadgen.Restart{Owners: owners, Lookups: lookups, Together: t.together, Within: t.restarts})
			return err
		})
		f.restarted = time.Since(begun)
		t.run.Step("%s: %s restarted: %.0f %% of a core", t.name, what, l.CPU)
		return l, err
	}
	if t.both {
		f.ownersRestart, err = restart("all", t.owners, t.lookups)
		f.lookupsRestart = f.ownersRestart
		return err
	}
	if f.ownersRestart, err = restart("owners", t.owners, 0); err != nil {
		return err
	}
	f.lookupsRestart, err = restart("lookups", 0, t.lookups)
	return err
}

// restartGroups restarts all processes in groups, as in Centrifuge's figure 13: a manager
// and its share of the owners and of the lookups, then the next. The leader is first.
func (t *testbed) restartGroups(ctx context.Context) error {
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
		both.Go(func() { end = t.restartManager(ctx, manager) })
		_, err = t.clients.Restart(loadgen.Restart{
			Part: i, Parts: groups, Together: t.together, Within: t.restarts / time.Duration(groups),
		})
		both.Wait()
		if err := errors.Join(err, end); err != nil {
			return err
		}
		t.run.Step("%s: restarted group %d of %d", t.name, i+1, groups)
	}
	var err error
	t.manager, err = t.group.Leader(ctx)
	return err
}

// restartManager restarts a manager, and waits until it knows a leader. The processor time
// of its shutdown is not counted.
func (t *testbed) restartManager(ctx context.Context, m *proc.Manager) error {
	used, err := proc.UsageOf(m.Pid())
	if err != nil {
		return err
	}
	t.before[m] += used.CPU
	if err := errors.Join(m.Terminate(ctx), m.Start()); err != nil {
		return err
	}
	return proc.Until(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		status, err := t.group.Status(ctx, m)
		if err == nil && status.GetLeader() == "" {
			err = errors.New("the restarted manager knows no leader")
		}
		return err
	})
}

// The floor is a gRPC server that answers lookups' requests and does nothing else: the
// minimum for any gRPC server with as many messages on as many connections.

const roleEcho = "echo"

// Echo is that server. It is exported for net/rpc.
type Echo struct {
	leaseholdv1.UnimplementedLookupServiceServer
	*proc.Server
}

// startEcho starts an Echo with the options of a manager.
func startEcho(context.Context, struct{}) (e *Echo, err error) {
	e = &Echo{}
	server := grpc.NewServer(wire.ServerOptions()...)
	leaseholdv1.RegisterLookupServiceServer(server, e)
	e.Server, err = proc.NewServer(server)
	return e, err
}

// Follow answers every request that the newest table is empty.
func (e *Echo) Follow(stream grpc.BidiStreamingServer[leaseholdv1.FollowRequest, leaseholdv1.FollowResponse]) error {
	for {
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		update := &leaseholdv1.Update{Namespace: r.GetNamespace(), Manager: "127.0.0.1:7400", Term: 1, Echo: r.GetSeq()}
		if err := stream.Send(&leaseholdv1.FollowResponse{Version: wire.Version, Kind: &leaseholdv1.FollowResponse_Update{Update: update}}); err != nil {
			return err
		}
	}
}

// floor measures the floor with as many clients as a size has, all of them lookups that
// poll often enough for as many messages. It returns percentages of a core.
func floor(ctx context.Context, s size, windows int) (out []float64, err error) {
	server, err := proc.Start(ctx, roleEcho, nil)
	if err != nil {
		return nil, err
	}
	defer server.Close()
	clients, err := loadgen.StartClients(ctx, namespace, nil, []string{server.Addr})
	if err != nil {
		return nil, err
	}
	defer clients.Close()
	if _, err := clients.Grow(loadgen.Growth{Lookups: s.clients(), Together: s.together, Within: s.grow / 2, Poll: s.floorPoll()}); err != nil {
		return nil, err
	}
	_, window := s.windows(windows)
	for range windows + 1 {
		before, err := proc.Group{server}.CPU()
		if err != nil {
			return nil, err
		}
		begun := time.Now()
		if err := proc.Pause(ctx, window); err != nil {
			return nil, err
		}
		after, err := proc.Group{server}.CPU()
		if err != nil {
			return nil, err
		}
		out = append(out, 100*(after-before).Seconds()/time.Since(begun).Seconds())
	}
	now, err := clients.Look()
	if err == nil && now.Proven != s.clients() {
		err = fmt.Errorf("%d clients of the floor, of which %d get answers", s.clients(), now.Proven)
	}
	return out[1:], err // in the first window some clients are still connecting
}

// floorPoll returns the poll interval at which all clients together send as many messages
// as owners that renew and lookups that poll.
func (s size) floorPoll() time.Duration {
	perSecond := float64(s.owners)/protocol.DefaultTiming().Renew.Seconds() + float64(s.lookups)/loadgen.Poll.Seconds()
	return time.Duration(float64(s.clients()) / perSecond * float64(time.Second))
}
