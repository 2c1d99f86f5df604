package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold/internal/child"
)

// strikeOwner kills an owner, or restarts one, or stops one if there is time for
// that.
func (n *nemesis) strikeOwner(ctx context.Context, random *rand.Rand) error {
	switch random.IntN(4) {
	case 0:
		if n.mayStop(reserve) {
			return n.stopOwner(ctx, random)
		}
	case 1:
		if child.CanSuspend {
			return n.restartOwner(ctx, random)
		}
	}
	return n.killOwner(ctx, random)
}

// killOwner kills some owner and brings it back.
func (n *nemesis) killOwner(ctx context.Context, random *rand.Rand) error {
	c := n.cluster
	victim := c.owners[random.IntN(len(c.owners))]
	victim.Kill()
	n.count(func(d *deeds) { d.owners++ })
	c.journal.add("killed %s", victim.Name)
	pause(ctx, n.absence(random))
	if err := victim.Start(); err != nil {
		return err
	}
	return c.awaitReturn(ctx, victim)
}

// stopOwner stops some owner until its keys are others', and lets it go on. It
// must find its leases gone then, though it has slept through their end.
func (n *nemesis) stopOwner(ctx context.Context, random *rand.Rand) error {
	c := n.cluster
	victim := c.owners[random.IntN(len(c.owners))]
	if err := victim.Stop(); err != nil {
		return fmt.Errorf("stopping %s: %w", victim.Name, err)
	}
	n.count(func(d *deeds) { d.stopped++ })
	c.journal.add("stopped %s, for longer than its leases last", victim.Name)
	pause(ctx, n.runOut())
	if err := victim.GoOn(); err != nil {
		return fmt.Errorf("letting %s go on: %w", victim.Name, err)
	}
	c.journal.add("%s goes on", victim.Name)
	return c.awaitReturn(ctx, victim)
}

// awaitReturn waits until an owner takes part again, and all is well.
func (c *cluster) awaitReturn(ctx context.Context, victim *member) error {
	if err := await(ctx, "waiting for the return of "+victim.Name, recoveryPatience, c.settled); err != nil {
		return fmt.Errorf("%w; %s", err, child.Tail(victim.Launch.Log))
	}
	c.journal.add("%s is back, and every key has an owner", victim.Name)
	return nil
}

// absence is how long an owner stays dead: mostly not for long, so that it proves
// itself that its predecessor is gone, but now and then until its leases have
// run out.
func (n *nemesis) absence(random *rand.Rand) time.Duration {
	short, long := between(random, time.Second, 3*time.Second), random.IntN(3) == 0
	if long && n.left() > n.runOut()+reserve {
		return n.runOut()
	}
	return short
}

// runOut is longer than the leader waits for an owner that it does not hear from,
// if it is not replaced meanwhile.
func (n *nemesis) runOut() time.Duration { return n.cluster.cfg.Lease*6/5 + 2*time.Second }

// mayStop says whether an owner can be stopped, with so much time left after
// that.
func (n *nemesis) mayStop(after time.Duration) bool {
	return child.CanSuspend && n.left() >= n.runOut()+after
}
