package main

import (
	"context"
	"errors"
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

// TestEndWaits: end waits for operations in progress, and cancels those that never end.
func TestEndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		c := &workers{stop: stop, halt: func() {}}
		c.working.Go(func() {
			time.Sleep(10 * time.Second)
			c.note(operation{begun: time.Now().Add(-10 * time.Second), took: 10 * time.Second}, nil)
		})
		c.working.Go(func() {
			<-ctx.Done()
			c.note(operation{}, errors.New("given up"))
		})
		begun := time.Now()
		done, failed := c.end()
		if worst(done, begun) != 10*time.Second || failed != 1 || time.Since(begun) != patience {
			t.Errorf("%v are done, %d have failed, after %v", done, failed, time.Since(begun))
		}
	})
}
