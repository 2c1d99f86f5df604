package flease

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/runtime/fleasenet"
)

// Repeated tries for a held lease return after one round trip, and do not disturb the holder, over
// a slow network.
func TestRepeatedTriesDoNotDisturbHolder(t *testing.T) {
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
						t.Errorf("try of member %d: %v after %v", id, err, took)
						return
					}
					time.Sleep(50 * time.Millisecond)
				}
			})
		}
		polling.Wait()
		if !l.Valid() {
			t.Errorf("the holder has lost the lease: %v", l.Err())
		}
		began := time.Now()
		if err := l.Release(t.Context()); err != nil || time.Since(began) > 2*(delay+jitter) {
			t.Errorf("released after %v: %v", time.Since(began), err)
		}
	})
}

// A member was partitioned until it dropped its record of a lease, and has seen later fences of
// other resources. After the partition it soon receives the lease again: a try there fails with
// the holder, and a waiting call is woken by the release.
func TestPartitionedMemberReceivesLeaseAgain(t *testing.T) {
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
		time.Sleep(6 * lease) // and drop the record
		s.network.Mend(1, 3)
		s.network.Mend(3, 1)
		time.Sleep(lease)
		if seen := looks(s, 3, "y"); seen != 1 {
			t.Errorf("member 3 has %d as the holder", seen)
		}
		s.kill(2) // so that the vote of 3 is required
		_, err := s.nodes[3].TryAcquire(t.Context(), "y")
		var held *HeldError
		if !errors.As(err, &held) || held.Holder != 1 {
			t.Errorf("try of member 3: %v", err)
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

// looks returns the holder in a member's view.
func looks(s *system, id ID, name string) ID {
	n := s.nodes[id]
	n.mu.Lock()
	defer n.mu.Unlock()
	return ID(n.machine.Look(n.now(), name).Holder)
}
