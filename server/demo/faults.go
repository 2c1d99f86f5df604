package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/server/proc"
)

// killLeader kills the leader, measures the failover and counts the leases that it cost,
// and starts the manager again.
func (n *nemesis) killLeader(ctx context.Context, random *rand.Rand) error {
	c := n.cluster
	victim, term, err := c.awaitLeader(ctx, 0)
	if err != nil {
		return err
	}
	before, begin := n.baseline(), time.Now()
	victim.Kill()
	n.count(func(f *FaultCounts) { f.LeadersKilled++ })
	c.journal.add("killed %s, the leader", victim.Name)
	next, _, err := c.awaitLeader(ctx, term)
	if err != nil {
		return err
	}
	if err := await(ctx, "waiting for renewals", func(ctx context.Context) error { return c.renewed(ctx, before) }); err != nil {
		return err
	}
	took := time.Since(begin)
	lost := n.lostSince(ctx, before)
	n.count(func(f *FaultCounts) {
		f.FailoverMillis = append(f.FailoverMillis, took.Milliseconds())
		f.LeasesLostInFailover += lost
	})
	c.journal.add("%s leads, and every owner has renewed with it, %d ms after the kill; lost leases: %d", next.Name, took.Milliseconds(), lost)
	proc.Pause(ctx, between(random, 500*time.Millisecond, 1500*time.Millisecond))
	return c.startManager(ctx, victim)
}

// awaitLeader waits for a leader of a later term.
func (c *cluster) awaitLeader(ctx context.Context, after leasehold.Term) (led *proc.Manager, term leasehold.Term, err error) {
	err = await(ctx, "waiting for a leader", func(ctx context.Context) (err error) {
		led, term, err = c.managers.Leader(ctx)
		if err == nil && term <= after {
			err = leasehold.Errorf("demo", leasehold.ErrNotLeader, "", "there is no leader after term %d", after)
		}
		return err
	})
	return led, term, err
}

// renewed fails unless every surviving owner has renewed with the leader.
func (c *cluster) renewed(ctx context.Context, since baseline) error {
	members, err := c.members(ctx)
	if err != nil {
		return err
	}
	for name := range c.survivors(since) {
		if _, ok := members[name]; !ok {
			return fmt.Errorf("%s has not renewed", name)
		}
	}
	return nil
}

// startManager starts a manager that was killed, and returns when it reports itself ready:
// then another may be killed.
func (c *cluster) startManager(ctx context.Context, m *proc.Manager) error {
	if err := m.Start(); err != nil {
		return err
	}
	err := await(ctx, "waiting for the return of "+m.Name, func(ctx context.Context) error {
		return c.managers.On(ctx, slices.Index(c.managers.All, m), func(ctx context.Context, to grpc.ClientConnInterface) error {
			answer, err := healthpb.NewHealthClient(to).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true))
			if err == nil && answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
				err = fmt.Errorf("it reports %v", answer.GetStatus())
			}
			return err
		})
	})
	c.journal.add("%s is back", m.Name)
	return err
}

// strikeOwner kills an owner, or restarts one, or stops one if there is time. The first time it
// kills one.
func (n *nemesis) strikeOwner(ctx context.Context, random *rand.Rand) error {
	switch kind := random.IntN(4); {
	case n.sum().OwnersKilled == 0:
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
	leases := n.load.leasesOf(leasehold.OwnerID(victim.Name))
	var recovering errgroup.Group
	recovering.Go(func() error { return n.recover(ctx, victim.Name, leases) })
	n.cluster.journal.add("killed %s", victim.Name)
	victim.Kill()
	n.count(func(f *FaultCounts) { f.OwnersKilled++ })
	if n.cluster.cfg.Supervised || n.sum().OwnersKilled > 1 {
		proc.Pause(ctx, n.absence(random))
	} else if err := recovering.Wait(); err != nil { // its leases expire, at least once
		return err
	}
	if err := victim.Start(); err != nil {
		return err
	}
	return errors.Join(n.cluster.awaitReturn(ctx, victim, n.cluster.settled), recovering.Wait())
}

// absence is how long an owner stays dead: mostly not for long, so that without a supervisor it
// proves itself that its predecessor is gone, but now and then until its leases have expired.
func (n *nemesis) absence(random *rand.Rand) time.Duration {
	short, long := between(random, time.Second, 3*time.Second), random.IntN(3) == 0
	if long && n.left() > n.expiry()+reserve {
		return n.expiry()
	}
	return short
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
	return c.awaitReturn(ctx, victim, c.settled)
}

// awaitReturn waits until an owner is a member again, under a condition.
func (c *cluster) awaitReturn(ctx context.Context, o *proc.Process, settled func(context.Context) error) error {
	if err := await(ctx, "waiting for the return of "+o.Name, settled); err != nil {
		return fmt.Errorf("%w; %s", err, proc.Tail(o.Launch.Log))
	}
	c.journal.add("%s is back, and every key has an owner", o.Name)
	return nil
}

func (n *nemesis) restartOwner(ctx context.Context, random *rand.Rand) error {
	return n.restart(ctx, n.drawOwner(random))
}

// roll restarts all owners, one after the other, for as many rounds as were configured and
// there is time. A restart that has begun is finished.
func (n *nemesis) roll(ctx context.Context, _ *rand.Rand) error {
	cfg := &n.cluster.cfg
	for round := 1; cfg.Rounds == 0 || round <= cfg.Rounds; round++ {
		for _, o := range n.cluster.owners {
			if n.left() <= 0 {
				return nil
			}
			if err := n.restart(ctx, o); err != nil {
				return err
			}
		}
		n.count(func(f *FaultCounts) { f.Rounds++ })
	}
	return nil
}

// restart ends an owner with SIGTERM, so that it moves its state to the others first, starts
// it again, and waits until it has its share and nothing moves any more.
func (n *nemesis) restart(ctx context.Context, o *proc.Process) error {
	c := n.cluster
	c.restarting.Store(&o.Name)
	defer c.restarting.Store(nil)
	begin := time.Now()
	ending, cancel := context.WithTimeout(ctx, drainTimeout+shutdownTimeout)
	defer cancel()
	if err := o.Terminate(ending); err != nil {
		return err
	}
	c.journal.add("%s moved its state away and ended after %.1f s", o.Name, time.Since(begin).Seconds())
	if err := o.Start(); err != nil {
		return err
	}
	if err := c.awaitReturn(ctx, o, c.settledAndStill); err != nil {
		return err
	}
	n.count(func(f *FaultCounts) { f.Restarts++ })
	return nil
}

// byRestart reports whether a restart caused a loss. If restarts are the only fault it
// always did.
func (c *cluster) byRestart(l leasehold.Loss) bool {
	name := c.restarting.Load()
	return c.cfg.Rolling || name != nil && l.Owner == leasehold.OwnerID(*name)
}
