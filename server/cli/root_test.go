package cli

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestSecondSignal: a second signal ends the process at once, unless it arrives together with the
// first.
func TestSecondSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		stopped := false
		stopAfterFirstSignal(ctx, func() { stopped = true })
		cancel()
		time.Sleep(signalGrace - 1)
		if synctest.Wait(); stopped {
			t.Error("a signal together with the first ends the process")
		}
		time.Sleep(time.Nanosecond)
		if synctest.Wait(); !stopped {
			t.Error("a second signal does not end the process")
		}
	})
}
