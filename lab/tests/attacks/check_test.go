//go:build linux

package attacks

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

// mebibyte is the unit of memory bounds.
const mebibyte = 1 << 20

// check calls attack and checks the invariants: the manager's memory grows by at most so many
// bytes, a new lookup can connect, and the honest clients renew their leases and lose none.
// It returns the growth in bytes.
func (c *testbed) check(t *testing.T, most int64, attack func()) int64 {
	t.Helper()
	began, before, renewed := time.Now(), c.memory(t), c.clients.renewals(t)
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
	newcomer := c.clients.open(t)
	_ = newcomer.Close(context.Background()) // never fails
	least := renewed + float64(len(c.clients.owners))*max(1, float64(time.Since(began)/renew)/3)
	eventually(t, "renewals continue", func(context.Context) error {
		if now := c.clients.renewals(t); now < least {
			return fmt.Errorf("%v renewals, %v before the attack, want %v", now, renewed, least)
		}
		return nil
	})
	c.clients.check(t)
	more := highest - before
	if more > most {
		t.Errorf("the manager's memory grew by %.1f MiB, want at most %.1f", float64(more)/mebibyte, float64(most)/mebibyte)
	}
	return more
}
