package flease

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/runtime/fleasenet"
)

// Members who ask time and again for what another has get their answers after one
// round trip, and do not take it away, over a network that is slow.
func TestPollersTakeNothingAway(t *testing.T) {
	within(t, func(t *testing.T) {
		const delay, jitter = 10 * time.Millisecond, 5 * time.Millisecond
		s := newSystem(t, 5, nil)
		s.network.net.SetLatency(fleasenet.Latency{Delay: delay, Jitter: jitter})
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

// A member that was cut off for so long that it has forgotten a lease, and has
// seen later fences of others since, hears of it soon after the network is mended:
// who asks there is told, and who waits there is woken by the release.
func TestForgetfulMemberHearsOfALease(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		y := s.acquire(1, "y")
		time.Sleep(lease)
		s.network.Cut(1, 3)
		s.network.Cut(3, 1)
		time.Sleep(2 * lease)
		if err := s.acquire(2, "z").Release(t.Context()); err != nil { // 2 and 3 decide
			t.Fatal(err)
		}
		time.Sleep(6 * lease) // and forget
		s.network.Mend(1, 3)
		s.network.Mend(3, 1)
		time.Sleep(lease)
		if seen := looks(s, 3, "y"); seen != 1 {
			t.Errorf("member 3 takes %d for the holder", seen)
		}
		s.kill(2) // so that what 3 says is needed
		_, err := s.nodes[3].TryAcquire(t.Context(), "y")
		var held *HeldError
		if !errors.As(err, &held) || held.Holder != 1 {
			t.Errorf("member 3 is told: %v", err)
		}
		got := make(chan *Lease, 1)
		go func() { got <- s.acquire(3, "y") }()
		time.Sleep(lease)
		began := time.Now()
		if err := y.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-got
		if took := time.Since(began); took > lease/20 {
			t.Errorf("handed over after %v", took)
		}
	})
}

// looks returns whom a member takes for the holder.
func looks(s *system, id ID, name string) ID {
	n := s.nodes[id]
	n.mu.Lock()
	defer n.mu.Unlock()
	return ID(n.machine.Look(n.look(), name).Holder)
}
