//go:build failpoints

package owner

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
)

// After Stop has returned all checks in the range fail, even if the owner is slow to
// publish its new view.
func TestStopReturnsAfterPublication(t *testing.T) {
	t.Cleanup(failpoint.Reset)
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.lead(manager.Config{})
		var stops atomic.Int64
		var source atomic.Pointer[Owner]
		a := n.counts("10.0.0.1:8080", func(c *Config) {
			c.Mover.Export = func(_ context.Context, out *Export) error {
				if err := out.Stop(); err != nil {
					return err
				}
				stops.Add(1)
				if _, ok := source.Load().Check(out.Range().Start); ok {
					t.Error("a check in the range succeeds after Stop")
				}
				return nil
			}
		})
		source.Store(a.owner)
		time.Sleep(10 * time.Second)
		if err := failpoint.Arm("owner/before-publishing=pause:for=50ms:times=0"); err != nil {
			t.Fatal(err)
		}
		n.counts("10.0.0.2:8080", asConfigured)
		time.Sleep(30 * time.Second)
		if stops.Load() == 0 {
			t.Error("no range was moved")
		}
	})
}
