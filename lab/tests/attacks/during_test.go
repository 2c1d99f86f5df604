//go:build linux

package attacks

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

// mebibyte is what bounds on memory are written in.
const mebibyte = 1 << 20

// during attacks, and sees to it that nothing comes of it: the manager has at most so many
// bytes more than before, somebody new is let in while it lasts, the honest renew their
// leases, and lose nothing. It returns how many bytes more the manager had.
func (c *castle) during(t *testing.T, most int64, attack func()) int64 {
	t.Helper()
	began, before, renewed := time.Now(), c.memory(t), c.honest.renewals(t)
	watching, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	highest := before
	running.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-watching.Done():
				return
			case <-tick.C:
				highest = max(highest, c.memory(t))
			}
		}
	})
	attack()
	stop()
	running.Wait()
	newcomer := c.honest.open(t)
	_ = newcomer.Close(context.Background()) // it never fails
	least := renewed + float64(len(c.honest.owners))*max(1, float64(time.Since(began)/renew)/3)
	eventually(t, "renewals go on", func(context.Context) error {
		if now := c.honest.renewals(t); now < least {
			return fmt.Errorf("%v renewals, were %v, want %v", now, renewed, least)
		}
		return nil
	})
	c.honest.check(t)
	more := highest - before
	if more > most {
		t.Errorf("the manager has %.1f MiB more than before, want at most %.1f", float64(more)/mebibyte, float64(most)/mebibyte)
	}
	return more
}
