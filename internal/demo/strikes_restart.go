package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/child"
)

// restartOwner restarts some owner, as for an upgrade. Nobody should notice.
func (n *nemesis) restartOwner(ctx context.Context, random *rand.Rand) error {
	return n.restart(ctx, n.cluster.owners[random.IntN(len(n.cluster.owners))])
}

// roll restarts all owners, one after the other, for as many rounds as were
// asked for and there is time. A restart that has begun is finished.
func (n *nemesis) roll(ctx context.Context) {
	cfg := &n.cluster.cfg
	for round := 1; cfg.Rounds == 0 || round <= cfg.Rounds; round++ {
		for _, o := range n.cluster.owners {
			if n.left() <= 0 {
				return
			}
			if !n.try(ctx, nil, func(ctx context.Context, _ *rand.Rand) error { return n.restart(ctx, o) }) {
				return
			}
		}
		n.count(func(d *deeds) { d.rounds++ })
		n.cluster.journal.add("all %d owners have been restarted", len(n.cluster.owners))
	}
}

// restart has an owner end, which moves its state to the others first, starts it
// again, and waits until it has its share and nothing moves any more.
func (n *nemesis) restart(ctx context.Context, o *member) error {
	c := n.cluster
	c.blame(o.Name)
	defer c.blame("")
	c.journal.add("%s is asked to end", o.Name)
	begin := time.Now()
	ending, cancel := context.WithTimeout(ctx, drainPatience+lastWords)
	defer cancel()
	if err := o.Finish(ending); err != nil {
		return err
	}
	ended := time.Now()
	if err := o.Start(); err != nil {
		return err
	}
	if err := await(ctx, "waiting for the return of "+o.Name, recoveryPatience, c.settledAndStill); err != nil {
		return fmt.Errorf("%w; %s", err, child.Tail(o.Launch.Log))
	}
	n.count(func(d *deeds) { d.restarts++ })
	c.journal.add("%s had moved its state away and ended after %.1f s, and has its share back after %.1f s more",
		o.Name, ended.Sub(begin).Seconds(), time.Since(ended).Seconds())
	return nil
}

// settledAndStill says whether all is as it should be, and stays that way.
func (c *cluster) settledAndStill(ctx context.Context) (bool, error) {
	if ok, err := c.settled(ctx); !ok {
		return false, err
	}
	moves, err := c.admin.moves(ctx)
	if err != nil {
		return false, err
	}
	if moves > 0 {
		return false, fmt.Errorf("%d ranges are on the move", moves)
	}
	return true, nil
}

// blame names the owner that is being restarted; empty if none is.
func (c *cluster) blame(owner string) { c.restarting.Store(&owner) }

// byRestart says whether a restart is to blame for a loss. If nothing else is
// done to owners, it always is.
func (c *cluster) byRestart(l leasehold.Loss) bool {
	if c.cfg.Rolling {
		return true
	}
	owner := c.restarting.Load()
	return owner != nil && *owner != "" && l.Owner == leasehold.OwnerID(*owner)
}
