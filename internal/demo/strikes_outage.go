package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// beforeOutage is how long users call before the managers are killed.
const beforeOutage = 2 * time.Second

// maxAsked is how many keys are asked for after an outage, to see that all are served.
const maxAsked = 1000

// outage kills all managers for a time, and nobody else. Servers suspend their leases when
// those have reached their deadlines, keep the statuses, and serve them again when a manager
// leads.
func (n *nemesis) outage(ctx context.Context, _ *rand.Rand) error {
	c := n.cluster
	if !pause(ctx, beforeOutage) {
		return ctx.Err()
	}
	before, err := c.photographed(ctx)
	if err != nil {
		return err
	}
	led, err := c.admin.leader(ctx, 0)
	if err != nil {
		return err
	}
	var killing sync.WaitGroup
	for _, m := range c.managers {
		killing.Go(m.Kill)
	}
	killing.Wait()
	begin := time.Now()
	c.journal.add("killed all %d managers", len(c.managers))
	if suspended := min(c.cfg.Lease, c.cfg.Outage); !pause(ctx, suspended) {
		return ctx.Err()
	} else if left := c.cfg.Outage - suspended; left > 0 {
		c.journal.add("servers have suspended their leases and keep the statuses; managers return in %.1f s", left.Seconds())
		if !pause(ctx, left) {
			return ctx.Err()
		}
	}
	n.count(func(d *deeds) { d.outage = time.Since(begin) })
	for _, m := range c.managers {
		if err := m.Start(); err != nil {
			return err
		}
	}
	err = await(ctx, "waiting for a leader", recoveryPatience, func(ctx context.Context) (bool, error) {
		led, err = c.admin.leader(ctx, led.term)
		return err == nil, err
	})
	if err != nil {
		return err
	}
	returned := time.Now()
	c.journal.add("all managers were started again after %.1f s, and %s leads", c.cfg.Outage.Seconds(), c.nameOf(led.leader))
	if err := n.load.answered(ctx); err != nil {
		return err
	}
	n.count(func(d *deeds) { d.unavailable = time.Since(returned) })
	c.journal.add("all keys have an answer %d ms after that", time.Since(returned).Milliseconds())
	return n.judgeOutage(ctx, before)
}

// judgeOutage counts the leases that were resumed, and waits until the requests that have
// waited through the outage are answered.
func (n *nemesis) judgeOutage(ctx context.Context, before photograph) error {
	c := n.cluster
	after, err := c.photographed(ctx)
	if err != nil {
		return err
	}
	if kept := sameLeases(before.ranges, after.ranges); c.cfg.Outage > c.cfg.Lease { // or none was suspended
		n.count(func(d *deeds) { d.resumed = kept })
		c.journal.add("%d of %d ranges are held under the same generation as before", kept, len(before.ranges))
	}
	return await(ctx, "waiting for the requests of the outage", 2*recoveryPatience, func(context.Context) (bool, error) {
		waiting := n.load.waiting.Load()
		return waiting <= int64(n.load.rate), fmt.Errorf("%d requests wait", waiting)
	})
}

// sameLeases counts the leases that are there before and after, with their generations.
func sameLeases(before, after []*leaseholdv1.HeldRange) int {
	type lease struct{ start, limit, generation uint64 }
	of := func(r *leaseholdv1.HeldRange) lease {
		return lease{r.GetLease().GetStart(), r.GetLease().GetLimit(), r.GetLease().GetGeneration()}
	}
	now := make(map[lease]bool)
	for _, r := range after {
		now[of(r)] = r.GetOwner() != ""
	}
	same := 0
	for _, r := range before {
		if now[of(r)] {
			same++
		}
	}
	return same
}

// answered asks for keys that are spread over the key space until each has an answer,
// whatever it is.
func (l *load) answered(ctx context.Context) error {
	n := min(maxAsked, len(l.users))
	left := make([]*user, n)
	for i := range n {
		left[i] = &l.users[i*len(l.users)/n]
	}
	return await(ctx, "waiting until all keys are served", recoveryPatience, func(ctx context.Context) (bool, error) {
		var err error
		left, err = l.round(ctx, left, func(u *user) question { return question{key: u.key} }, func(*user, reply) {}, func(int) {})
		return len(left) == 0, err
	})
}
