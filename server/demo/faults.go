package demo

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/server/proc"
)

const (
	// recoveryTimeout bounds the time until a process that was killed is a member again, and
	// until the keys of an owner have another one.
	recoveryTimeout = 60 * time.Second
	failoverTimeout = 60 * time.Second
)

// killLeader kills the leader, measures the failover and counts the leases that it cost,
// and starts the manager again.
func (n *nemesis) killLeader(ctx context.Context, random *rand.Rand) error {
	c := n.cluster
	victim, err := c.awaitLeader(ctx, 0)
	if err != nil {
		return err
	}
	before, begin := n.baseline(), time.Now()
	victim.Kill()
	n.count(func(f *FaultCounts) { f.LeadersKilled++ })
	c.journal.add("killed %s, the leader", victim.Name)
	next, err := c.awaitFailover(ctx, victim.term, before)
	if err != nil {
		return err
	}
	took := time.Since(begin)
	c.journal.add("%s leads, and every owner has renewed with it, %d ms after the kill", next.Name, took.Milliseconds())
	lost := n.lostSince(ctx, before)
	n.count(func(f *FaultCounts) {
		f.FailoverMillis = append(f.FailoverMillis, took.Milliseconds())
		f.LeasesLostInFailover += lost
	})
	if lost > 0 {
		c.journal.add("%d leases were lost because there was no leader", lost)
	}
	proc.Pause(ctx, between(random, 500*time.Millisecond, 1500*time.Millisecond))
	return c.startManager(ctx, victim.Manager)
}

func (c *cluster) awaitLeader(ctx context.Context, after leasehold.Term) (led leadership, err error) {
	err = await(ctx, "waiting for a leader", recoveryTimeout, func(ctx context.Context) (err error) {
		led, err = c.leader(ctx, after)
		return err
	})
	return led, err
}

// awaitFailover waits for a leader of a later term with which every surviving owner has
// renewed.
func (c *cluster) awaitFailover(ctx context.Context, after leasehold.Term, since baseline) (led leadership, err error) {
	err = await(ctx, "waiting for another leader", failoverTimeout, func(ctx context.Context) (err error) {
		if led, err = c.leader(ctx, after); err != nil {
			return err
		}
		members, err := c.members(ctx)
		if err != nil {
			return err
		}
		missing := c.survivors(since)
		maps.DeleteFunc(missing, func(name string, _ bool) bool { return members[name].Owner == name })
		if len(missing) > 0 {
			return fmt.Errorf("%d owners have not renewed with %s", len(missing), led.Name)
		}
		return nil
	})
	return led, err
}

// startManager starts a manager that was killed, and returns when it reports itself ready:
// then another may be killed.
func (c *cluster) startManager(ctx context.Context, m *proc.Manager) error {
	if err := m.Start(); err != nil {
		return err
	}
	err := await(ctx, "waiting for the return of "+m.Name, recoveryTimeout, func(ctx context.Context) error {
		return c.managers.On(ctx, slices.Index(c.managers.All, m), func(ctx context.Context, to grpc.ClientConnInterface) error {
			answer, err := healthpb.NewHealthClient(to).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true))
			if err == nil && answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
				err = fmt.Errorf("it reports %v", answer.GetStatus())
			}
			return err
		})
	})
	if err != nil {
		return err
	}
	c.journal.add("%s is back", m.Name)
	return nil
}

// strikeOwner kills an owner, or restarts one, or stops one if there is time.
func (n *nemesis) strikeOwner(ctx context.Context, random *rand.Rand) error {
	switch kind := random.IntN(4); {
	case kind == 0 && n.mayStop(reserve):
		return n.stopOwner(ctx, random)
	case kind == 1 && proc.CanPause:
		return n.restartOwner(ctx, random)
	}
	return n.killOwner(ctx, random)
}

func (n *nemesis) drawOwner(random *rand.Rand) *proc.Process {
	return n.cluster.owners[random.IntN(len(n.cluster.owners))]
}

func (n *nemesis) killOwner(ctx context.Context, random *rand.Rand) error {
	victim := n.drawOwner(random)
	victim.Kill()
	n.count(func(f *FaultCounts) { f.OwnersKilled++ })
	n.cluster.journal.add("killed %s", victim.Name)
	proc.Pause(ctx, n.absence(random))
	if err := victim.Start(); err != nil {
		return err
	}
	return n.cluster.awaitReturn(ctx, victim)
}

// stopOwner stops an owner until its keys have other owners, and resumes it. It must then
// find its leases expired, although it has not run meanwhile.
func (n *nemesis) stopOwner(ctx context.Context, random *rand.Rand) error {
	c, victim := n.cluster, n.drawOwner(random)
	if err := victim.Pause(); err != nil {
		return fmt.Errorf("stopping %s: %w", victim.Name, err)
	}
	n.count(func(f *FaultCounts) { f.OwnersStopped++ })
	c.journal.add("stopped %s, for longer than its leases last", victim.Name)
	proc.Pause(ctx, n.expiry())
	if err := victim.Resume(); err != nil {
		return fmt.Errorf("resuming %s: %w", victim.Name, err)
	}
	c.journal.add("resumed %s", victim.Name)
	return c.awaitReturn(ctx, victim)
}

// awaitReturn waits until an owner is a member again, and every key has an owner.
func (c *cluster) awaitReturn(ctx context.Context, victim *proc.Process) error {
	if err := c.awaitOwner(ctx, victim, c.settled); err != nil {
		return err
	}
	c.journal.add("%s is back, and every key has an owner", victim.Name)
	return nil
}

func (c *cluster) awaitOwner(ctx context.Context, o *proc.Process, try func(context.Context) error) error {
	err := await(ctx, "waiting for the return of "+o.Name, recoveryTimeout, try)
	if err != nil {
		err = fmt.Errorf("%w; %s", err, proc.Tail(o.Launch.Log))
	}
	return err
}

// absence is how long an owner stays dead: mostly not for long, so that it proves itself
// that its predecessor is gone, but now and then until its leases have expired.
func (n *nemesis) absence(random *rand.Rand) time.Duration {
	short, long := between(random, time.Second, 3*time.Second), random.IntN(3) == 0
	if long && n.left() > n.expiry()+reserve {
		return n.expiry()
	}
	return short
}

// expiry is longer than the leader waits for a silent owner, if it is not replaced.
func (n *nemesis) expiry() time.Duration { return n.cluster.cfg.Lease*6/5 + 2*time.Second }

// mayStop reports whether there is time to stop an owner, and so much after that.
func (n *nemesis) mayStop(after time.Duration) bool {
	return proc.CanPause && n.left() >= n.expiry()+after
}

func (n *nemesis) restartOwner(ctx context.Context, random *rand.Rand) error {
	return n.restart(ctx, n.drawOwner(random))
}

// roll restarts all owners, one after the other, for as many rounds as were configured and
// there is time. A restart that has begun is finished.
func (n *nemesis) roll(ctx context.Context) {
	cfg := &n.cluster.cfg
	for round := 1; cfg.Rounds == 0 || round <= cfg.Rounds; round++ {
		for _, o := range n.cluster.owners {
			if n.left() <= 0 || !n.try(ctx, nil, func(ctx context.Context, _ *rand.Rand) error { return n.restart(ctx, o) }) {
				return
			}
		}
		n.count(func(f *FaultCounts) { f.Rounds++ })
		n.cluster.journal.add("all %d owners have been restarted", len(n.cluster.owners))
	}
}

// restart ends an owner with SIGTERM, so that it moves its state to the others first, starts
// it again, and waits until it has its share and nothing moves any more.
func (n *nemesis) restart(ctx context.Context, o *proc.Process) error {
	c := n.cluster
	c.restarting.Store(&o.Name)
	defer c.restarting.Store(nil)
	c.journal.add("%s is asked to end", o.Name)
	begin := time.Now()
	ending, cancel := context.WithTimeout(ctx, drainTimeout+shutdownTimeout)
	defer cancel()
	if err := o.Terminate(ending); err != nil {
		return err
	}
	ended := time.Now()
	if err := o.Start(); err != nil {
		return err
	}
	if err := c.awaitOwner(ctx, o, c.settledAndStill); err != nil {
		return err
	}
	n.count(func(f *FaultCounts) { f.Restarts++ })
	c.journal.add("%s moved its state away and ended after %.1f s, and has its share back after %.1f s more",
		o.Name, ended.Sub(begin).Seconds(), time.Since(ended).Seconds())
	return nil
}

// byRestart reports whether a restart caused a loss. If restarts are the only fault it
// always did.
func (c *cluster) byRestart(l leasehold.Loss) bool {
	name := c.restarting.Load()
	return c.cfg.Rolling || name != nil && l.Owner == leasehold.OwnerID(*name)
}
