package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/proc"
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
	if !proc.Pause(ctx, beforeOutage) {
		return ctx.Err()
	}
	led, err := c.awaitLeader(ctx, 0)
	if err != nil {
		return err
	}
	before, err := c.admin.Ranges(ctx, string(namespace), "")
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
	c.journal.add("all managers were started again after %.1f s, and %s leads", c.cfg.Outage.Seconds(), led.Name)
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
	for _, m := range c.managers.All {
		killing.Go(m.Kill)
	}
	killing.Wait()
	begin := time.Now()
	c.journal.add("killed all %d managers", len(c.managers.All))
	suspended := min(c.cfg.Lease, c.cfg.Outage)
	if !proc.Pause(ctx, suspended) {
		return ctx.Err()
	}
	if left := c.cfg.Outage - suspended; left > 0 {
		c.journal.add("servers have suspended their leases and keep the statuses; managers return in %.1f s", left.Seconds())
		if !proc.Pause(ctx, left) {
			return ctx.Err()
		}
	}
	n.count(func(f *FaultCounts) { f.OutageSeconds = time.Since(begin).Seconds() })
	return c.startManagers()
}

// judgeOutage counts the leases that were resumed, and waits until the requests that waited
// for the end of the outage are answered.
func (n *nemesis) judgeOutage(ctx context.Context, before admin.Ranges) error {
	c := n.cluster
	var after admin.Ranges
	err := await(ctx, "listing the leases", recoveryTimeout, func(ctx context.Context) (err error) {
		after, err = c.admin.Ranges(ctx, string(namespace), "")
		return err
	})
	if err != nil {
		return err
	}
	if kept := sameLeases(before.Ranges, after.Ranges); c.cfg.Outage > c.cfg.Lease { // or none was suspended
		n.count(func(f *FaultCounts) { f.ResumedRanges = kept })
		c.journal.add("%d of %d ranges are held under the same generation as before", kept, len(before.Ranges))
	}
	return await(ctx, "waiting for the requests of the outage", 2*recoveryTimeout, func(context.Context) error {
		if waiting := n.load.waiting.Load(); waiting > int64(c.cfg.Rate) {
			return fmt.Errorf("%d requests wait", waiting)
		}
		return nil
	})
}

// sameLeases counts the leases that are held before and after, with the same generation.
func sameLeases(before, after []admin.Range) (same int) {
	type lease struct {
		admin.Interval
		leasehold.Generation
	}
	held := make(map[lease]bool)
	for _, r := range after {
		held[lease{r.Interval, r.Generation}] = r.Owner != ""
	}
	for _, r := range before {
		if held[lease{r.Interval, r.Generation}] {
			same++
		}
	}
	return same
}

// awaitAnswers reads keys that are spread over the key space until each has an answer.
func (l *load) awaitAnswers(ctx context.Context) error {
	left := l.users.spread(maxAsked)
	return await(ctx, "waiting until all keys are served", recoveryTimeout, func(ctx context.Context) error {
		var err error
		if left, err = l.askAll(ctx, left, readStatus, func(*user, reply) {}); len(left) == 0 {
			return nil //nolint:nilerr // it is the reason of those that are left
		}
		return err
	})
}
