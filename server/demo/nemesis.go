package demo

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/server/proc"
)

// A nemesis injects faults: it kills leaders and owners and starts them again, stops owners
// for longer than their leases last, and restarts owners as for an upgrade. Or it does nothing
// but restart owners, or kills all managers for a time. There is one fault of a leader and one of
// an owner at a time; both may overlap.
type nemesis struct {
	cluster *cluster
	load    *load
	begin   time.Time

	mu     sync.Mutex
	faults FaultCounts
}

func newNemesis(c *cluster, l *load) *nemesis {
	return &nemesis{cluster: c, load: l, begin: time.Now(), faults: FaultCounts{FailoverMillis: []int64{}, RecoveryMillis: []float64{}}}
}

func (n *nemesis) count(change func(*FaultCounts)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(&n.faults)
}

func (n *nemesis) countMove(share float64) {
	n.count(func(f *FaultCounts) { f.MovedRanges, f.MovedShare = f.MovedRanges+1, f.MovedShare+share })
}

func (n *nemesis) sum() FaultCounts {
	n.mu.Lock()
	defer n.mu.Unlock()
	f := n.faults
	f.FailoverMillis, f.RecoveryMillis = slices.Clone(f.FailoverMillis), slices.Clone(f.RecoveryMillis)
	if sorted := slices.Sorted(slices.Values(f.RecoveryMillis)); len(sorted) > 0 {
		f.RecoveryMedianMillis, f.RecoveryMaxMillis = sorted[len(sorted)/2], sorted[len(sorted)-1]
	}
	return f
}

// The latest times of the first restart, its duration, and after it of the first stop, the
// first kill of a leader and the first kill of an owner. A short demo has less time, and a
// very short one neither restart nor stop.
const (
	firstRestart    = time.Second
	restartTime     = 2 * time.Second
	firstStop       = time.Second
	firstLeaderKill = 4 * time.Second
	firstOwnerKill  = 8 * time.Second
)

// reserve is enough time for a failover and for the return of a process.
const reserve = 8 * time.Second

// A fault happens to some process; it returns when the cluster has recovered.
type fault func(context.Context, *rand.Rand) error

// run injects faults. If the demo has an end it returns in time for the last recovery
// before it, or else when the context ends.
func (n *nemesis) run(ctx context.Context) {
	n.begin = time.Now()
	var renewing sync.WaitGroup
	defer renewing.Wait()
	if n.cluster.certificates != nil {
		renewing.Go(func() { n.try(ctx, nil, n.renewCertificates) })
	}
	switch {
	case n.cluster.cfg.Rolling:
		n.try(ctx, nil, n.roll)
	case n.cluster.cfg.Outage > 0:
		n.try(ctx, nil, n.outage)
	default:
		n.kill(ctx)
	}
}

// kill begins with a restart and a stop if there is time, and then kills leaders and owners.
func (n *nemesis) kill(ctx context.Context) {
	leaders, owners := n.random(3), n.random(4)
	if n.mayStop(firstRestart+restartTime+firstStop+minFor) && !(proc.Pause(ctx, firstRestart) && n.try(ctx, owners, n.restartOwner)) {
		return
	}
	// Alone, so that its keys get other owners for no reason but time.
	if n.mayStop(firstStop+minFor) && !(proc.Pause(ctx, firstStop) && n.try(ctx, owners, n.stopOwner)) {
		return
	}
	left := n.left()
	var both sync.WaitGroup
	both.Go(func() { n.repeat(ctx, leaders, min(firstLeaderKill, left/4), n.killLeader) })
	both.Go(func() { n.repeat(ctx, owners, min(firstOwnerKill, left/2), n.strikeOwner) })
	both.Wait()
}

// random returns a random stream of the seed.
func (n *nemesis) random(stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(n.cluster.cfg.Seed, stream))
}

// repeat injects a fault for the first time, and then again while there is time to recover.
func (n *nemesis) repeat(ctx context.Context, random *rand.Rand, first time.Duration, f fault) {
	every := n.cluster.cfg.KillEvery
	for wait := first; proc.Pause(ctx, wait); {
		if !n.try(ctx, random, f) {
			return
		}
		wait = every/2 + between(random, 0, every)
		if n.left() < wait+reserve {
			return
		}
	}
}

// try injects a fault, and reports whether to go on. An error ends the demo, unless it is
// over anyway.
func (n *nemesis) try(ctx context.Context, random *rand.Rand, f fault) bool {
	err := f(ctx, random)
	if err != nil && ctx.Err() == nil {
		n.cluster.fail(err)
	}
	return err == nil
}

// left is the time until the demo ends.
func (n *nemesis) left() time.Duration {
	if n.cluster.cfg.For == 0 {
		return math.MaxInt64
	}
	return n.cluster.cfg.For - time.Since(n.begin)
}

// expiry is longer than the leader waits for a silent owner, if it is not replaced.
func (n *nemesis) expiry() time.Duration { return n.cluster.cfg.Lease*6/5 + 2*time.Second }

// mayStop reports whether there is time to stop an owner, and so much after that.
func (n *nemesis) mayStop(after time.Duration) bool {
	return proc.CanPause && n.left() >= n.expiry()+after
}

// between draws a duration.
func between(random *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(random.Int64N(int64(most-least)))
}

// A baseline is the state before a fault that must not cost leases: the incarnations of the
// owners, by name, and the number of losses so far.
type baseline struct {
	incarnations map[string]int
	losses       int
}

func (n *nemesis) baseline() baseline {
	b := baseline{incarnations: make(map[string]int), losses: len(n.load.tally.lossesAfter(0))}
	for _, o := range n.cluster.owners {
		b.incarnations[o.Name] = o.Incarnation()
	}
	return b
}

// survivors returns the owners that have run ever since.
func (c *cluster) survivors(since baseline) map[string]bool {
	names := make(map[string]bool)
	for _, o := range c.owners {
		if i := o.Incarnation(); i > 0 && i == since.incarnations[o.Name] {
			names[o.Name] = true
		}
	}
	return names
}

// lostSince counts the leases of surviving owners that ended with a loss. Owners get two more
// renewals to report what they no longer hold.
func (n *nemesis) lostSince(ctx context.Context, since baseline) int {
	proc.Pause(ctx, 2*n.cluster.cfg.renew())
	alive, lost := n.cluster.survivors(since), 0
	for _, l := range n.load.tally.lossesAfter(since.losses) {
		released := l.Cause == leasehold.CauseReleased || l.Cause == leasehold.CauseRestarted
		if alive[string(l.Owner)] && !released {
			lost++
		}
	}
	return lost
}
