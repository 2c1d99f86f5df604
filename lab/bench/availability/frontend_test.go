package availability

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestKeysAreApart: keys are spread over the key space.
func TestKeysAreApart(t *testing.T) {
	const n = 128
	for i := range n {
		if got, want := uint64(keyOf(i, n))>>57, uint64(i); got != want {
			t.Errorf("key %d is in part %d", i, got)
		}
	}
}

// TestEndWaits: end waits for operations in progress, and those that never end have a minute.
func TestEndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &workers{halt: func() {}}
		begun := time.Now()
		c.working.Go(func() {
			c.execute(t.Context(), func(context.Context) error { time.Sleep(10 * time.Second); return nil })
		})
		c.working.Go(func() {
			c.execute(t.Context(), func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		})
		done, failed := c.end()
		if worst(done, begun) != 10*time.Second || failed != 1 || time.Since(begun) != patience {
			t.Errorf("%v are done, %d have failed, after %v", done, failed, time.Since(begun))
		}
	})
}
