package demo

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// A nemesis kills leaders and owners, and brings them back. It also stops owners
// for longer than their leases last: unlike the dead they come back with all that
// they believed. And it restarts owners as one does for an upgrade, or does
// nothing but that. Leaders die one at a time, and so owners are struck, but an
// owner may be struck while there is no leader.
type nemesis struct {
	cluster *cluster
	load    *load     // set before run
	begin   time.Time // set by run

	mu    sync.Mutex
	deeds deeds
}

// deeds is what a nemesis has done, and what came of it.
type deeds struct {
	owners     int             // killed
	stopped    int             // owners
	restarts   int             // of owners, that were asked to end and have come back
	rounds     int             // in which all owners were restarted
	leaders    int             // killed
	failovers  []time.Duration // of each leader killed that was replaced
	leasesLost int             // in all failovers together

	renewed       int // certificates, by processes that went on meanwhile
	lostToRenewal int // leases

	outage      time.Duration // for which no manager ran
	resumed     int           // leases that were suspended in it
	unavailable time.Duration // from when a manager leads again until all keys are served
}

func (n *nemesis) done() deeds {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := n.deeds
	d.failovers = slices.Clone(d.failovers)
	return d
}

// When the first owner is restarted and how long that takes, how long after that
// the first one is stopped, and after that the first leader and the first owner
// die, at the latest: a short demo has less time, and one that is too short has no
// time for the first two.
const (
	firstRestart    = time.Second
	restartTime     = 2 * time.Second
	firstOwnerStops = time.Second
	firstLeaderDies = 4 * time.Second
	firstOwnerDies  = 8 * time.Second
)

// reserve is enough time for a failover, and for a victim to return.
const reserve = 8 * time.Second

// run strikes again and again. If the demo has an end it returns in time for
// the last victim to be replaced before it, or else when the context ends.
func (n *nemesis) run(ctx context.Context) {
	n.begin = time.Now()
	if n.cluster.certificates != nil {
		var renewing sync.WaitGroup
		renewing.Go(func() {
			if err := n.renewCertificates(ctx); err != nil && ctx.Err() == nil {
				n.cluster.fail(err)
			}
		})
		defer renewing.Wait()
	}
	if n.cluster.cfg.Rolling {
		n.roll(ctx)
		return
	}
	if n.cluster.cfg.Outage > 0 {
		n.try(ctx, nil, n.outage)
		return
	}
	leaders, owners := n.random(3), n.random(4)
	if n.mayStop(firstRestart + restartTime + firstOwnerStops + minFor) {
		if !pause(ctx, firstRestart) || !n.try(ctx, owners, n.restartOwner) {
			return
		}
	}
	if n.mayStop(firstOwnerStops + minFor) {
		// Alone, so that nothing but the time gives its keys to others.
		if !pause(ctx, firstOwnerStops) || !n.try(ctx, owners, n.stopOwner) {
			return
		}
	}
	left := n.left()
	leader, owner := min(firstLeaderDies, left/4), min(firstOwnerDies, left/2)
	var both sync.WaitGroup
	both.Go(func() { n.repeat(ctx, leaders, leader, n.killLeader) })
	both.Go(func() {
		first := n.killOwner
		n.repeat(ctx, owners, owner, func(ctx context.Context, random *rand.Rand) error {
			strike := first
			first = n.strikeOwner
			return strike(ctx, random)
		})
	})
	both.Wait()
}

// random draws what the seed says, from a stream of its own.
func (n *nemesis) random(stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(n.cluster.cfg.Seed, stream))
}

// A strike kills or stops somebody and waits for the recovery.
type strike func(context.Context, *rand.Rand) error

// repeat strikes at its time, and then again for as long as there is time left
// to replace the victim.
func (n *nemesis) repeat(ctx context.Context, random *rand.Rand, first time.Duration, s strike) {
	cfg := &n.cluster.cfg
	for wait := first; pause(ctx, wait); {
		if !n.try(ctx, random, s) {
			return
		}
		wait = cfg.KillEvery/2 + between(random, 0, cfg.KillEvery)
		if n.left() < wait+reserve {
			return
		}
	}
}

// try strikes, and reports whether to go on. A failure ends the demo, unless it
// is over anyway.
func (n *nemesis) try(ctx context.Context, random *rand.Rand, s strike) bool {
	err := s(ctx, random)
	if err != nil && ctx.Err() == nil {
		n.cluster.fail(err)
	}
	return err == nil
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
