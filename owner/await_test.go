package owner

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
)

// An installation is a move from a to b whose state has arrived. The
// application of b installs it when the test allows it.
type installation struct {
	a, b       *counting
	lease      leasehold.Lease // granted to b
	key        leasehold.Key   // of the range
	put        func()
	stopLeader func() // stops the leader, so that it grants no more leases

	mu      sync.Mutex
	revoked map[leasehold.Lease]leasehold.Cause // OnRevoke calls of b
}

// cause returns the cause of OnRevoke of the lease at b.
func (i *installation) cause() leasehold.Cause {
	synctest.Wait()
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.revoked[i.lease]
}

// installing returns a started installation. The test may replace the install function.
// More ranges may arrive meanwhile.
func installing(t *testing.T, instead func(leasehold.Lease)) *installation {
	t.Helper()
	n := newNetwork(t)
	_, stopLeader := n.lead(manager.Config{Moves: 1})
	i := &installation{stopLeader: stopLeader, a: n.counts("10.0.0.1:8080", asConfigured), revoked: make(map[leasehold.Lease]leasehold.Cause)}
	crowd := newCrowd(t, i.a)
	crowd.until(10*time.Second, func() bool { return len(i.a.has()) == 256 })
	begun, calm := make(chan leasehold.Lease, 1), make(chan struct{})
	i.put = func() { close(calm) }
	i.b = n.counts("10.0.0.2:8080", func(cfg *Config) {
		cfg.OnRevoke = func(leases []leasehold.Lease, cause leasehold.Cause) {
			i.mu.Lock()
			defer i.mu.Unlock()
			for _, l := range leases {
				i.revoked[l] = cause
			}
		}
		take := cfg.Mover.Import
		cfg.Mover.Import = func(ctx context.Context, in *Import) (func(leasehold.Lease), error) {
			put, err := take(ctx, in)
			return func(l leasehold.Lease) {
				select {
				case begun <- l:
				default: // a later range
				}
				<-calm
				if instead != nil {
					instead(l)
				}
				put(l)
			}, err
		}
	})
	i.lease = <-begun
	i.key = i.lease.Range.Start
	synctest.Wait()
	return i
}

// wantAwait checks the result and the duration of Await.
func wantAwait(ctx context.Context, t *testing.T, o *Owner, key leasehold.Key, want error, after time.Duration) {
	t.Helper()
	begun := time.Now()
	if got := o.Await(ctx, key); !errors.Is(got, want) || time.Since(begun) != after {
		t.Errorf("Await returns %v after %v, want %v after %v", got, time.Since(begun), want, after)
	}
	if n := o.awaiting.Load(); n != 0 {
		t.Errorf("%d calls still wait", n)
	}
}

// Await waits for a key whose state has arrived but is not installed.
func TestAwaitWaitsForInstall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		move := installing(t, nil)
		b := move.b.owner
		const callers = 3
		answers := make(chan error, callers)
		for range callers {
			go func() { answers <- b.Await(t.Context(), move.key) }()
		}
		synctest.Wait()
		if n := b.awaiting.Load(); n != callers || len(answers) > 0 {
			t.Errorf("%d calls wait, %d have returned", n, len(answers))
		}
		if _, ok := b.Check(move.key); ok {
			t.Error("Check succeeds before the installation")
		}
		begun := time.Now()
		move.put()
		for range callers {
			if err := <-answers; err != nil {
				t.Errorf("after the installation Await returns %v", err)
			}
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("Await returns %v after the installation", took)
		}
		if _, ok := b.Check(move.key); !ok {
			t.Error("Check fails after Await has succeeded")
		}
		wantAwait(t.Context(), t, b, move.key, nil, 0)
		wantAwait(t.Context(), t, move.a.owner, move.key, leasehold.ErrNotOwner, 0) // the source has lost it
	})
}

// Await waits only for coming ranges, with a timeout and a limit of concurrent calls.
func TestAwaitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		move := installing(t, nil)
		b := move.b.owner
		other := move.a.has()[0] // does not move
		wantAwait(t.Context(), t, b, other, leasehold.ErrNotOwner, 0)
		wantAwait(t.Context(), t, move.a.owner, other, nil, 0)
		wantAwait(t.Context(), t, b, move.key, leasehold.ErrNotOwner, maxAwait)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		wantAwait(ctx, t, b, move.key, context.DeadlineExceeded, time.Millisecond)

		b.awaiting.Store(maxAwaiting)
		begun := time.Now()
		if b.Await(t.Context(), move.key) == nil || time.Since(begun) != 0 || b.awaiting.Load() != maxAwaiting {
			t.Errorf("a call beyond the limit waits for %v, and %d calls are left", time.Since(begun), b.awaiting.Load())
		}
		b.awaiting.Store(0)
		move.put()
	})
}

// Await fails if the state cannot be installed.
func TestAwaitEndsWithFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var move *installation
		move = installing(t, func(l leasehold.Lease) {
			if l == move.lease {
				panic("no room")
			}
		})
		move.stopLeader() // otherwise it grants the range again, and Await might succeed
		answer := make(chan error, 1)
		go func() { answer <- move.b.owner.Await(t.Context(), move.key) }()
		synctest.Wait()
		begun := time.Now()
		move.put()
		if err := <-answer; err == nil || time.Since(begun) != 0 {
			t.Errorf("Await reports that it is held, or does so after %v", time.Since(begun))
		}
	})
}

// Close ends the waiting calls of Await.
func TestAwaitEndsWithOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		move := installing(t, nil)
		answer := make(chan error, 1)
		go func() { answer <- move.b.owner.Await(t.Context(), move.key) }()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		begun := time.Now()
		go func() { _ = move.b.owner.Close(ctx) }()
		if err := <-answer; err == nil || time.Since(begun) != 0 {
			t.Errorf("Await reports that it is held, or does so after %v", time.Since(begun))
		}
		move.put()
		<-move.b.owner.Done()
	})
}

// AwaitEnd returns at the end of a lease: at Close, and when KeepSuspended has
// passed.
func TestAwaitEnd(t *testing.T) {
	for name, end := range map[string]struct {
		lease func(t *testing.T, o *Owner, stopLeader func())
		after time.Duration // maximum
	}{
		"closed":  {func(t *testing.T, o *Owner, _ func()) { _ = o.Close(t.Context()) }, 0},
		"run out": {func(_ *testing.T, _ *Owner, stopLeader func()) { stopLeader() }, 10*time.Second + time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				_, stop := n.lead(manager.Config{})
				cfg := n.config("10.0.0.1:8080")
				cfg.KeepSuspended = time.Minute
				o := mustJoin(t, cfg)
				lease, ok := o.Check(42)
				if !ok {
					t.Fatal("holds nothing")
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if begun := time.Now(); o.AwaitEnd(ctx, lease) == nil || time.Since(begun) != time.Minute {
					t.Errorf("AwaitEnd of a renewed lease returns after %v", time.Since(begun))
				}
				ended := make(chan bool, 1)
				go func() { ended <- o.AwaitEnd(t.Context(), lease) == nil }()
				synctest.Wait()
				begun := time.Now()
				end.lease(t, o, stop)
				if !<-ended || time.Since(begun) > end.after || o.Held(lease) {
					t.Errorf("the lease has ended after %v, want %v; held: %t", time.Since(begun), end.after, o.Held(lease))
				}
				if o.AwaitEnd(t.Context(), lease) != nil {
					t.Error("AwaitEnd waits for a lease that has ended")
				}
				closed, cancel := context.WithCancel(t.Context())
				cancel()
				_ = o.Close(closed) // the leader may be down
			})
		})
	}
}
