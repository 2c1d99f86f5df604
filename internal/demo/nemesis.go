package demo

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// A nemesis kills leaders and owners, and brings them back. Leaders die one at a
// time, and so do owners, but an owner may die while there is no leader.
type nemesis struct {
	cluster *cluster
	begin   time.Time // set by run

	mu    sync.Mutex
	deeds deeds
}

// deeds is what a nemesis has done, and what came of it.
type deeds struct {
	owners     int
	leaders    int
	failovers  []time.Duration // of each leader killed that was replaced
	leasesLost int             // in all failovers together
}

func (n *nemesis) done() deeds {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := n.deeds
	d.failovers = slices.Clone(d.failovers)
	return d
}

// When the first leader and the first owner die, at the latest: a short demo has
// less time.
const (
	firstLeaderDies = 8 * time.Second
	firstOwnerDies  = 16 * time.Second
)

// reserve is enough time for a failover, and for a victim to return.
const reserve = 8 * time.Second

// run strikes again and again. If the demo has an end it returns in time for
// the last victim to be replaced before it, or else when the context ends.
func (n *nemesis) run(ctx context.Context) {
	n.begin = time.Now()
	cfg := &n.cluster.cfg
	leader, owner := firstLeaderDies, firstOwnerDies
	if cfg.For > 0 {
		leader, owner = min(leader, cfg.For/4), min(owner, cfg.For/2)
	}
	var both sync.WaitGroup
	both.Go(func() { n.repeat(ctx, 3, leader, n.killLeader) })
	both.Go(func() { n.repeat(ctx, 4, owner, n.killOwner) })
	both.Wait()
}

// repeat strikes at its time, and then again for as long as there is time left
// to replace the victim.
func (n *nemesis) repeat(ctx context.Context, stream uint64, first time.Duration, strike func(context.Context, *rand.Rand) error) {
	cfg := &n.cluster.cfg
	random := rand.New(rand.NewPCG(cfg.Seed, stream))
	for wait := first; pause(ctx, wait); {
		if err := strike(ctx, random); err != nil {
			if ctx.Err() == nil {
				n.cluster.fail(err)
			}
			return
		}
		wait = cfg.KillEvery/2 + between(random, 0, cfg.KillEvery)
		if n.left() < wait+reserve {
			return
		}
	}
}

// left is how much time there is until the demo ends.
func (n *nemesis) left() time.Duration {
	if n.cluster.cfg.For == 0 {
		return math.MaxInt64
	}
	return n.cluster.cfg.For - time.Since(n.begin)
}

// between draws a time.
func between(random *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(random.Int64N(int64(most-least)))
}

// pause waits, and reports whether to go on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
