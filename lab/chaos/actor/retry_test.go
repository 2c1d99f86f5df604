package actor

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/leasehold-dev/leasehold"
)

// TestRetry has temporary errors, then a permanent one.
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		passing := []leasehold.Kind{leasehold.ErrUnavailable, leasehold.ErrNotFound, leasehold.ErrNameTaken}
		attempts := 0
		open := func(context.Context) (int, error) {
			attempts++
			if attempts <= len(passing) {
				return 0, leasehold.Errorf("open", passing[attempts-1], "chaos", "not yet")
			}
			return attempts, nil
		}
		if got, err := retry(t.Context(), slog.New(slog.DiscardHandler), "opening", open); got != 4 || err != nil {
			t.Errorf("got %d, %v after temporary errors, want 4", got, err)
		}
		refused := func(context.Context) (int, error) {
			return 0, leasehold.Errorf("open", leasehold.ErrDenied, "chaos", "no")
		}
		if _, err := retry(t.Context(), slog.New(slog.DiscardHandler), "opening", refused); leasehold.KindOf(err) != leasehold.ErrDenied {
			t.Errorf("got %v, want the refusal", err)
		}
	})
}
