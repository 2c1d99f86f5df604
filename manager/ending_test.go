package manager_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// A manager whose listener breaks ends by itself, and may be closed in the same
// moment: each of the two waits for all that was started, once.
func TestCloseWhileTheListenerBreaks(t *testing.T) {
	for round := range 50 { // whichever comes first; the race detector sees the rest
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
				t.Error("it was closed, and is not done")
			}
			if err := m.Err(); !errors.Is(err, leasehold.ErrClosed) && !errors.Is(err, leasehold.ErrUnavailable) {
				t.Errorf("it has ended because of %v", err)
			}
			c.forget("m1")
		})
	}
}
