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

// An installation is a range that has come to b, from a, and whose state b's
// application puts in its place only when it is told to.
type installation struct {
	a, b  *counting
	lease leasehold.Lease // with which it came
	key   leasehold.Key   // of the range
	put   func()
	hush  func() // stops the leader, which would go on to grant leases

	mu      sync.Mutex
	revoked map[leasehold.Lease]leasehold.Cause // what b's application was told
}

// told returns why the lease has ended, as far as b's application knows.
func (i *installation) told() leasehold.Cause {
	synctest.Wait()
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.revoked[i.lease]
}

// installing moves a range that far. What the application does instead of putting
// the state of a lease in its place, if anything, is up to the test. Others may
// have come after the first by the time that it is told to.
func installing(t *testing.T, instead func(leasehold.Lease)) *installation {
	t.Helper()
	n := newNetwork(t)
	_, hush := n.lead(manager.Config{Moves: 1})
	i := &installation{hush: hush, a: n.counts("10.0.0.1:8080", asConfigured), revoked: make(map[leasehold.Lease]leasehold.Cause)}
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
				default: // a later one
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

// wantAwait fails unless a call of Await returns after so long.
func wantAwait(ctx context.Context, t *testing.T, o *Owner, key leasehold.Key, want error, after time.Duration) {
	t.Helper()
	begun := time.Now()
	if got := o.Await(ctx, key); !errors.Is(got, want) || time.Since(begun) != after {
		t.Errorf("Await returns %v after %v, want %v after %v", got, time.Since(begun), want, after)
	}
	if n := o.awaiting.Load(); n != 0 {
		t.Errorf("%d still wait", n)
	}
}

// Whoever asks for a key that has come, and is not served yet, waits until it is.
func TestAwaitWaitsUntilTheStateIsInItsPlace(t *testing.T) {
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
			t.Errorf("%d wait, and %d do not", n, len(answers))
		}
		if _, ok := b.Check(move.key); ok {
			t.Error("Check does not wait, and finds a lease")
		}
		begun := time.Now()
		move.put()
		for range callers {
			if err := <-answers; err != nil {
				t.Errorf("it is in its place, and Await says %v", err)
			}
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("they were told after %v", took)
		}
		if _, ok := b.Check(move.key); !ok {
			t.Error("Await says that it is held, and Check that it is not")
		}
		wantAwait(t.Context(), t, b, move.key, nil, 0)
		wantAwait(t.Context(), t, move.a.owner, move.key, leasehold.ErrNotOwner, 0) // it has gone from there
	})
}

// Nobody waits for what does not come, nor for ever, nor in too large a crowd.
func TestAwaitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		move := installing(t, nil)
		b := move.b.owner
		other := move.a.has()[0] // stays where it is, for now
		wantAwait(t.Context(), t, b, other, leasehold.ErrNotOwner, 0)
		wantAwait(t.Context(), t, move.a.owner, other, nil, 0)
		wantAwait(t.Context(), t, b, move.key, leasehold.ErrNotOwner, longestAwait)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		wantAwait(ctx, t, b, move.key, context.DeadlineExceeded, time.Millisecond)

		b.awaiting.Store(maxAwaiting)
		begun := time.Now()
		if b.Await(t.Context(), move.key) == nil || time.Since(begun) != 0 || b.awaiting.Load() != maxAwaiting {
			t.Errorf("one too many waits for %v, and %d are left", time.Since(begun), b.awaiting.Load())
		}
		b.awaiting.Store(0)
		move.put()
	})
}

// State that cannot be put in its place does not come: who waits hears of it.
func TestAwaitEndsWithAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var move *installation
		move = installing(t, func(l leasehold.Lease) {
			if l == move.lease {
				panic("no room")
			}
		})
		move.hush() // it would grant the range again, and who waits might be told of that
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

// An owner that is closed lets nobody wait.
func TestAwaitEndsWithTheOwner(t *testing.T) {
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

// The end of a lease is noticed when it comes: with the owner, and when a suspended lease
// was kept for long enough.
func TestAwaitEnd(t *testing.T) {
	for name, end := range map[string]struct {
		lease func(t *testing.T, o *Owner, stopLeader func())
		after time.Duration // at most
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
					t.Errorf("a lease that is renewed has ended after %v", time.Since(begun))
				}
				ended := make(chan bool, 1)
				go func() { ended <- o.AwaitEnd(t.Context(), lease) == nil }()
				synctest.Wait()
				begun := time.Now()
				end.lease(t, o, stop)
				if !<-ended || time.Since(begun) > end.after || o.Held(lease) {
					t.Errorf("it has ended after %v, want %v; held: %t", time.Since(begun), end.after, o.Held(lease))
				}
				if o.AwaitEnd(t.Context(), lease) != nil {
					t.Error("it has ended, and is waited for")
				}
				closed, cancel := context.WithCancel(t.Context())
				cancel()
				_ = o.Close(closed) // the leader may be gone
			})
		})
	}
}
