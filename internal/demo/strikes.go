package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// recoveryPatience is how long a process that was killed may take to be part of
// the cluster again, and the keys of an owner to have another one.
const recoveryPatience = 60 * time.Second

// killLeader kills the leader, measures how long it takes to replace it and
// what that cost, and brings it back as a standby.
func (n *nemesis) killLeader(ctx context.Context, random *rand.Rand) error {
	c := n.cluster
	var led leadership
	var before photograph
	err := await(ctx, "looking for the leader", recoveryPatience, func(ctx context.Context) (bool, error) {
		var err error
		if led, err = c.admin.leader(ctx, 0); err == nil {
			before, err = c.photograph(ctx)
		}
		return err == nil, err
	})
	if err != nil {
		return err
	}
	victim := c.managerAt(led.leader)
	if victim == nil {
		return fmt.Errorf("the leader is at %s, where none of our managers is", led.leader)
	}
	begin := time.Now()
	victim.Kill()
	n.count(func(d *deeds) { d.leaders++ })
	c.journal.add("killed %s, the leader", victim.Name)
	next, err := c.awaitFailover(ctx, led.term, before)
	if err != nil {
		return err
	}
	took := time.Since(begin)
	c.journal.add("%s leads, and every owner has spoken to it, %d ms after the kill", c.nameOf(next.leader), took.Milliseconds())
	if err := n.judgeFailover(ctx, took, before); err != nil {
		return err
	}
	return n.restartManager(ctx, random, victim)
}

// judgeFailover counts what a failover cost.
func (n *nemesis) judgeFailover(ctx context.Context, took time.Duration, before photograph) error {
	c := n.cluster
	lost, err := c.lostBy(ctx, before)
	if err != nil {
		return err
	}
	n.count(func(d *deeds) {
		d.failovers = append(d.failovers, took)
		d.leasesLost += lost
	})
	if lost > 0 {
		c.journal.add("%d leases were lost because there was no leader", lost)
	}
	return nil
}

func (n *nemesis) restartManager(ctx context.Context, random *rand.Rand, m *member) error {
	c := n.cluster
	pause(ctx, between(random, 500*time.Millisecond, 1500*time.Millisecond))
	if err := m.Start(); err != nil {
		return err
	}
	err := await(ctx, "waiting for the return of "+m.Name, recoveryPatience, func(ctx context.Context) (bool, error) {
		return c.isReady(ctx, m)
	})
	if err != nil {
		return err
	}
	c.journal.add("%s is back", m.Name)
	return nil
}

func (n *nemesis) count(do func(*deeds)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	do(&n.deeds)
}

func (c *cluster) managerAt(addr string) *member {
	for _, m := range c.managers {
		if m.addr == addr {
			return m
		}
	}
	return nil
}

// isReady says whether a manager says of itself that it is: then another may die.
func (c *cluster) isReady(ctx context.Context, m *member) (bool, error) {
	ready := false
	err := c.admin.On(ctx, slices.Index(c.addrs, m.addr), func(ctx context.Context, to grpc.ClientConnInterface) error {
		answer, err := healthpb.NewHealthClient(to).Check(ctx, &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true))
		ready = answer.GetStatus() == healthpb.HealthCheckResponse_SERVING
		return err
	})
	return ready, err
}
