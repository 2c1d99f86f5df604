package supervisor

import (
	"context"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/runtime/supervise"
)

const maxConcurrentNotices = 16

// report sends the notices of all sessions, and returns when they are acknowledged or refused, or the context
// ends.
func (c *Config) report(ctx context.Context, deaths []supervise.Death) {
	ctx, cancel := context.WithTimeout(ctx, c.NoticeTimeout)
	defer cancel()
	var running sync.WaitGroup
	slots := make(chan struct{}, maxConcurrentNotices)
	for i := range deaths {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			c.reportOne(ctx, &deaths[i])
		})
	}
	running.Wait()
}

func (c *Config) reportOne(ctx context.Context, d *supervise.Death) {
	log := c.Logger.With("namespace", d.Namespace, "owner", d.Owner, "session", d.ID.Short())
	begin := time.Now()
	recorded, err := c.Report(ctx, d)
	log = log.With("after", time.Since(begin).Round(time.Millisecond))
	switch {
	case err != nil:
		log.Warn("death notice not acknowledged: the leases expire", "why", err)
	case recorded:
		log.Info("death notice acknowledged: the leases have ended")
	default:
		log.Info("death notice without effect: the leader does not have the session or its token; leases, if any, expire")
	}
}
