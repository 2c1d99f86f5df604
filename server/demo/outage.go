package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const (
	// beforeOutage is how long users call before the managers are killed.
	beforeOutage = 2 * time.Second
	// maxAsked bounds the keys that are read after an outage, to see that all are served.
	maxAsked = 1000
)

// outage kills all managers for a time. Servers suspend their leases at their deadlines, keep
// the statuses, and serve them again when a manager leads.
func (n *nemesis) outage(ctx context.Context, _ *rand.Rand) error {
	c := n.cluster
	if !pause(ctx, beforeOutage) {
		return ctx.Err()
	}
	led, err := c.awaitLeader(ctx, 0)
	if err != nil {
		return err
	}
	before, err := c.admin.ranges(ctx)
	if err != nil {
		return err
	}
	if err := n.absentManagers(ctx); err != nil {
		return err
	}
	if led, err = c.awaitLeader(ctx, led.term); err != nil {
		return err
	}
	returned := time.Now()
	c.journal.add("all managers were started again after %.1f s, and %s leads", c.cfg.Outage.Seconds(), c.nameOf(led.leader))
	if err := n.load.awaitAnswers(ctx); err != nil {
		return err
	}
	n.count(func(f *FaultCounts) { f.AfterReturn = time.Since(returned).Seconds() })
	c.journal.add("all keys have an answer %d ms after that", time.Since(returned).Milliseconds())
	return n.judgeOutage(ctx, before)
}

// absentManagers kills all managers, and starts them again when the outage is over.
func (n *nemesis) absentManagers(ctx context.Context) error {
	c := n.cluster
	var killing sync.WaitGroup
	for _, m := range c.managers {
		killing.Go(m.Kill)
	}
	killing.Wait()
	begin := time.Now()
	c.journal.add("killed all %d managers", len(c.managers))
	suspended := min(c.cfg.Lease, c.cfg.Outage)
	if !pause(ctx, suspended) {
		return ctx.Err()
	}
	if left := c.cfg.Outage - suspended; left > 0 {
		c.journal.add("servers have suspended their leases and keep the statuses; managers return in %.1f s", left.Seconds())
		if !pause(ctx, left) {
			return ctx.Err()
		}
	}
	n.count(func(f *FaultCounts) { f.OutageSeconds = time.Since(begin).Seconds() })
	return startAll(c.managers)
}

// judgeOutage counts the leases that were resumed, and waits until the requests that waited
// for the end of the outage are answered.
func (n *nemesis) judgeOutage(ctx context.Context, before []*leaseholdv1.HeldRange) error {
	c := n.cluster
	var after []*leaseholdv1.HeldRange
	err := await(ctx, "listing the leases", recoveryTimeout, func(ctx context.Context) (bool, error) {
		var err error
		after, err = c.admin.ranges(ctx)
		return err == nil, err
	})
	if err != nil {
		return err
	}
	if kept := sameLeases(before, after); c.cfg.Outage > c.cfg.Lease { // or none was suspended
		n.count(func(f *FaultCounts) { f.ResumedRanges = kept })
		c.journal.add("%d of %d ranges are held under the same generation as before", kept, len(before))
	}
	return await(ctx, "waiting for the requests of the outage", 2*recoveryTimeout, func(context.Context) (bool, error) {
		waiting := n.load.waiting.Load()
		return waiting <= int64(c.cfg.Rate), fmt.Errorf("%d requests wait", waiting)
	})
}

// sameLeases counts the leases that are held before and after, with the same generation.
func sameLeases(before, after []*leaseholdv1.HeldRange) int {
	type lease struct{ start, limit, generation uint64 }
	of := func(r *leaseholdv1.HeldRange) lease {
		return lease{r.GetLease().GetStart(), r.GetLease().GetLimit(), r.GetLease().GetGeneration()}
	}
	held := make(map[lease]bool)
	for _, r := range after {
		held[of(r)] = r.GetOwner() != ""
	}
	same := 0
	for _, r := range before {
		if held[of(r)] {
			same++
		}
	}
	return same
}

// awaitAnswers reads keys that are spread over the key space until each has an answer.
func (l *load) awaitAnswers(ctx context.Context) error {
	left := l.users.spread(maxAsked)
	return await(ctx, "waiting until all keys are served", recoveryTimeout, func(ctx context.Context) (bool, error) {
		var err error
		left, err = l.askAll(ctx, left, readStatus, func(*user, reply) {})
		return len(left) == 0, err
	})
}
