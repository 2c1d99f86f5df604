package manager_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
)

// A slowStore delays writes of the leader record. Other requests and the watch are fast.
type slowStore struct {
	store.Store
	writes atomic.Int64 // how long one takes, in nanoseconds
	blind  atomic.Bool  // the watch yields nothing
}

// fast ends the delay, and waits for writes in flight.
func (s *slowStore) fast() { time.Sleep(time.Duration(s.writes.Swap(0))) }

func (s *slowStore) Swap(ctx context.Context, prev storage.Version, next storage.Record) (storage.Version, storage.Outcome, error) {
	type result struct {
		v   storage.Version
		o   storage.Outcome
		err error
	}
	done := make(chan result, 1)
	go func() {
		time.Sleep(time.Duration(s.writes.Load()))
		v, o, err := s.Store.Swap(context.WithoutCancel(ctx), prev, next)
		done <- result{v, o, err}
	}()
	select {
	case r := <-done:
		return r.v, r.o, r.err
	case <-ctx.Done():
		return 0, storage.Unknown, ctx.Err()
	}
}

func (s *slowStore) WatchRecord(ctx context.Context, seen func(storage.Record)) {
	s.Store.WatchRecord(ctx, func(r storage.Record) {
		if !s.blind.Load() {
			seen(r)
		}
	})
}

// The leader's writes of the record are slow, by less than the TTL of 2 s or a little more, while the other manager's
// are fast. Keys are owned all the time, and the other manager takes over when necessary.
func TestLimpingLeader(t *testing.T) {
	for _, w := range []time.Duration{200, 500, 990, 1010, 1100, 1300, 1600, 1700, 1800, 1990, 2100, 2300, 2500} {
		w *= time.Millisecond
		if testing.Short() && w != 990*time.Millisecond && w != 2100*time.Millisecond {
			continue
		}
		for _, blind := range []bool{false, true} {
			name := w.String()
			if blind {
				name += ", without a watch"
			}
			t.Run(name, func(t *testing.T) {
				limpingLeader(t, func(time.Duration) time.Duration { return w }, blind, w > time.Second)
			})
		}
	}
}

// The leader's writes of the record become slower and slower, or are slow in bursts. Keys are owned all the time. The
// other manager takes over, unless a burst ends before three renewals are late.
func TestLimpingLeaderVaries(t *testing.T) {
	burst := func(period, w time.Duration) func(time.Duration) time.Duration {
		return func(elapsed time.Duration) time.Duration { return elapsed / period % 2 * w }
	}
	for _, test := range []struct {
		name   string
		writes func(elapsed time.Duration) time.Duration
		yields bool
	}{
		{"growing", func(elapsed time.Duration) time.Duration { return min(elapsed/20, 2500*time.Millisecond) }, true},
		{"long bursts", burst(10*time.Second, 1600*time.Millisecond), true},
		{"long bursts above the TTL", burst(10*time.Second, 2100*time.Millisecond), true},
		{"short bursts", burst(3*time.Second, 1300*time.Millisecond), false},
	} {
		t.Run(test.name, func(t *testing.T) { limpingLeader(t, test.writes, false, test.yields) })
	}
}

// limpingLeader slows down the leader's writes of the record, by a time that depends on how long it has been slow. It
// fails unless the leader resigns if yields is set, and stays otherwise.
func limpingLeader(t *testing.T, writes func(elapsed time.Duration) time.Duration, blind, yields bool) {
	inBubble(t, func(t *testing.T, c *cluster) {
		slow := &slowStore{}
		c.wrap = func(s store.Store) store.Store {
			if slow.Store != nil {
				return s
			}
			slow.Store = s
			return slow
		}
		c.start("m1")
		c.create("m1", pool())
		a := c.join("a")
		eventually(t, time.Minute, "complete", func() bool { return complete(a) })
		c.start("m2")
		time.Sleep(10 * time.Second)
		leases := a.Leases()
		slow.blind.Store(blind)
		owned, led := 0, 0
		begun := time.Now()
		const samples = 900
		for range samples {
			slow.writes.Store(int64(writes(time.Since(begun))))
			time.Sleep(100 * time.Millisecond)
			if complete(a) {
				owned++
			}
			for name := range c.managers {
				if s := c.status(name); s.GetLeader() == addr(name) {
					led++
				}
			}
		}
		if owned < samples-5 {
			t.Errorf("all keys are owned in %d of %d samples", owned, samples)
		}
		if led < samples*85/100 {
			t.Errorf("a manager leads in %d of %d samples", led, samples)
		}
		if s := c.status("m2"); (s.GetLeader() == addr("m2")) != yields {
			t.Errorf("the leader is %q", s.GetLeader())
		}
		if got := a.Leases(); len(got) != len(leases) || got[0].Generation != leases[0].Generation {
			t.Errorf("the leases were %v and are %v", leases, got)
		}
		slow.fast()
	})
}

// A single manager on a slow disk keeps leading, since no other could take over. With writes of 1.6 s it has
// authority for a quarter of the time: 0.4 s after each write.
func TestLimpingAlone(t *testing.T) {
	for _, test := range []struct{ millis, percent int }{{990, 99}, {1100, 99}, {1300, 99}, {1600, 50}} {
		w := time.Duration(test.millis) * time.Millisecond
		t.Run(w.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				slow := &slowStore{}
				c.wrap = func(s store.Store) store.Store { slow.Store = s; return slow }
				c.start("m1")
				c.create("m1", pool())
				a := c.join("a")
				eventually(t, time.Minute, "complete", func() bool { return complete(a) })
				slow.writes.Store(int64(w))
				owned := 0
				const samples = 3000
				for range samples {
					time.Sleep(100 * time.Millisecond)
					if complete(a) {
						owned++
					}
				}
				if owned < samples*test.percent/100 {
					t.Errorf("all keys are owned in %d of %d samples", owned, samples)
				}
				slow.fast()
			})
		})
	}
}
