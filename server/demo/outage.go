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
	proc.Pause(ctx, beforeOutage)
	_, term, err := c.awaitLeader(ctx, 0)
	if err != nil {
		return err
	}
	before, err := c.leases(ctx)
	if err != nil {
		return err
	}
	if err := n.absentManagers(ctx); err != nil {
		return err
	}
	led, _, err := c.awaitLeader(ctx, term)
	if err != nil {
		return err
	}
	returned := time.Now()
	c.journal.add("all managers were started again, and %s leads", led.Name)
	err = n.load.everyone(ctx, n.load.users.each(maxAsked), func(int) {}, readStatus, func(*user, status) {})
	if err != nil {
		return err
	}
	n.count(func(f *FaultCounts) { f.AfterReturn = time.Since(returned).Seconds() })
	c.journal.add("all keys have an answer %d ms after that", time.Since(returned).Milliseconds())
	if err := n.countResumed(ctx, before); err != nil {
		return err
	}
	return await(ctx, "waiting for the requests of the outage", func(context.Context) error {
		if waiting := n.load.waiting.Load(); waiting > int64(c.cfg.Rate) {
			return fmt.Errorf("%d requests wait", waiting)
		}
		return nil
	})
}

// absentManagers kills all managers, and starts them again when the outage is over.
func (n *nemesis) absentManagers(ctx context.Context) error {
	c, begin := n.cluster, time.Now()
	var killing sync.WaitGroup
	for _, m := range c.managers.All {
		killing.Go(m.Kill)
	}
	killing.Wait()
	c.journal.add("killed all %d managers for %v; servers suspend their leases after %v, and keep the statuses", len(c.managers.All), c.cfg.Outage, c.cfg.Lease)
	if !proc.Pause(ctx, c.cfg.Outage) {
		return ctx.Err()
	}
	n.count(func(f *FaultCounts) { f.OutageSeconds = time.Since(begin).Seconds() })
	return c.startManagers()
}

// A held is the identity of a lease.
type held struct {
	admin.Interval
	leasehold.Generation
}

func (c *cluster) leases(ctx context.Context) (leases map[held]bool, err error) {
	err = await(ctx, "listing the leases", func(ctx context.Context) error {
		table, err := c.admin.Ranges(ctx, string(namespace), "")
		leases = make(map[held]bool)
		for _, r := range table.Ranges {
			leases[held{r.Interval, r.Generation}] = r.Owner != ""
		}
		return err
	})
	return leases, err
}

// countResumed counts the leases that were suspended, and are held under the same generation.
func (n *nemesis) countResumed(ctx context.Context, before map[held]bool) error {
	if n.cluster.cfg.Outage <= n.cluster.cfg.Lease {
		return nil // none was suspended
	}
	after, err := n.cluster.leases(ctx)
	if err != nil {
		return err
	}
	kept := 0
	for lease := range before {
		if after[lease] {
			kept++
		}
	}
	n.count(func(f *FaultCounts) { f.ResumedRanges = kept })
	n.cluster.journal.add("%d of %d ranges are held under the same generation as before", kept, len(before))
	return nil
}
