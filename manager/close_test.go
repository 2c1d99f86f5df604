package manager_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// A manager whose listener fails ends, and may be closed at the same moment: both wait for all goroutines, and the
// teardown runs once.
func TestCloseWhileListenerFails(t *testing.T) {
	for round := range 50 { // in either order; the race detector covers the rest
		inBubble(t, func(t *testing.T, c *cluster) {
			m := c.start("m1")
			_ = c.at[addr("m1")].Close()
			for range round {
				runtime.Gosched()
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if err := m.Close(ctx); err != nil {
				t.Errorf("Close: %v", err)
			}
			select {
			case <-m.Done():
			default:
				t.Error("a closed manager is not done")
			}
			if err := m.Err(); !errors.Is(err, leasehold.ErrClosed) && !errors.Is(err, leasehold.ErrUnavailable) {
				t.Errorf("unexpected reason: %v", err)
			}
			c.forget("m1")
		})
	}
}
