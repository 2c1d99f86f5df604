package flease

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/fleasenet"
)

// Members who ask time and again for what another has get their answers after one
// round trip, and do not take it away, over a network that is slow.
func TestPollersTakeNothingAway(t *testing.T) {
	within(t, func(t *testing.T) {
		const delay, jitter = 10 * time.Millisecond, 5 * time.Millisecond
		s := newSystem(t, 5, nil)
		s.network.net().SetWeather(fleasenet.Weather{Delay: delay, Jitter: jitter})
		l := s.acquire(1, "r")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for id := ID(2); id <= 5; id++ { // until all have met
			_, _ = s.nodes[id].TryAcquire(ctx, "r")
		}
		var polling sync.WaitGroup
		for id := ID(2); id <= 5; id++ {
			polling.Go(func() {
				for ctx.Err() == nil {
					began := time.Now()
					_, err := s.nodes[id].TryAcquire(t.Context(), "r")
					var held *HeldError
					if took := time.Since(began); took > 2*(delay+jitter) || !errors.As(err, &held) || held.Holder != 1 {
						t.Errorf("member %d is told %v after %v", id, err, took)
						return
					}
					time.Sleep(50 * time.Millisecond)
				}
			})
		}
		polling.Wait()
		if !l.Valid() {
			t.Errorf("the holder has lost it: %v", l.Err())
		}
		began := time.Now()
		if err := l.Release(t.Context()); err != nil || time.Since(began) > 2*(delay+jitter) {
			t.Errorf("released after %v: %v", time.Since(began), err)
		}
	})
}
