package owner

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
)

// workers are an application with a worker for each key that it holds: OnGrant starts it, and it ends when
// AwaitEnd returns. Between OnSuspend and OnResume it pauses.
type workers struct {
	t      *testing.T
	owner  *Owner
	joined chan struct{} // closed when owner is set: OnGrant may be called before Join returns
	ended  sync.WaitGroup

	mu      sync.Mutex
	running map[leasehold.Key]leasehold.Generation
	paused  map[leasehold.Key]bool
	revoked map[leasehold.Key]leasehold.Generation // newest in a call of OnRevoke
}

func newWorkers(t *testing.T, cfg *Config) *workers {
	w := &workers{
		t: t, joined: make(chan struct{}), running: make(map[leasehold.Key]leasehold.Generation),
		paused: make(map[leasehold.Key]bool), revoked: make(map[leasehold.Key]leasehold.Generation),
	}
	cfg.OnGrant = w.each(func(key leasehold.Key, l leasehold.Lease) {
		w.running[key], w.paused[key] = l.Generation, false
		w.ended.Go(func() { w.work(Lease{Lease: l, Key: key}) })
	})
	cfg.OnSuspend = w.each(func(key leasehold.Key, _ leasehold.Lease) { w.paused[key] = true })
	cfg.OnResume = w.each(func(key leasehold.Key, _ leasehold.Lease) { w.paused[key] = false })
	revoked := w.each(func(key leasehold.Key, l leasehold.Lease) { w.revoked[key] = l.Generation })
	cfg.OnRevoke = func(leases []leasehold.Lease, _ leasehold.Cause) { revoked(leases) }
	return w
}

// each returns a callback that calls f for each of the test's keys in the leases.
func (w *workers) each(f func(leasehold.Key, leasehold.Lease)) func([]leasehold.Lease) {
	return func(leases []leasehold.Lease) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, l := range leases {
			for _, key := range keys() {
				if l.Range.Contains(key) {
					f(key, l)
				}
			}
		}
	}
}

func (w *workers) work(l Lease) {
	<-w.joined
	if err := w.owner.AwaitEnd(context.Background(), l); err != nil {
		w.t.Error(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running[l.Key] == l.Generation {
		delete(w.running, l.Key)
	}
}

// check checks that exactly the keys on which Check succeeds have a worker that is not paused, and that exactly
// the leases that have ended were revoked.
func (w *workers) check(when string) {
	w.t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range keys() {
		lease, held := w.owner.Check(key)
		g, runs := w.running[key]
		switch {
		case held != (runs && !w.paused[key]):
			w.t.Errorf("%s: Check of key %v returns %t; it has a worker: %t, paused: %t", when, key, held, runs, w.paused[key])
		case held && g != lease.Generation:
			w.t.Errorf("%s: the worker of key %v has generation %d, its lease %d", when, key, g, lease.Generation)
		case runs && w.revoked[key] >= g:
			w.t.Errorf("%s: the lease of key %v was revoked, and its worker runs", when, key)
		default:
			continue
		}
		return
	}
}

// count returns the numbers of workers that run and that pause.
func (w *workers) count() (running, paused int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key := range w.running {
		if w.paused[key] {
			paused++
		}
	}
	return len(w.running) - paused, paused
}

// A range whose move has stopped it is suspended: its workers pause, and continue if the move fails. They end
// when the lease ends. Check, Held, AwaitEnd and the callbacks agree in every path.
func TestWorkersSurviveFailedMoves(t *testing.T) {
	for name, fail := range map[string]func(ctx context.Context, stopLeader func()) error{
		"Export fails": func(context.Context, func()) error {
			time.Sleep(300 * time.Millisecond)
			return errors.New("the disk is full")
		},
		"Export hangs": func(ctx context.Context, _ func()) error {
			<-ctx.Done()
			return ctx.Err()
		},
		"managers fail": func(ctx context.Context, stopLeader func()) error {
			stopLeader()
			<-ctx.Done()
			return ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				_, stopLeader := n.lead(manager.Config{Moves: 1})
				stopped := make(chan []leasehold.Key, 1)
				var exports atomic.Int32
				var healed atomic.Bool
				var w *workers
				a := n.counts("10.0.0.1:8080", func(c *Config) {
					w = newWorkers(t, c)
					whole := c.Mover.Export
					c.Mover.Export = func(ctx context.Context, out *Export) error {
						first := exports.Add(1) == 1
						if !first && !healed.Load() {
							return errors.New("the disk is still full")
						}
						if err := whole(ctx, out); err != nil || !first {
							return err
						}
						stopped <- slices.DeleteFunc(keys(), func(k leasehold.Key) bool { return !out.Range().Contains(k) })
						return fail(ctx, stopLeader)
					}
				})
				w.owner = a.owner
				close(w.joined)
				newCrowd(t, a).until(10*time.Second, func() bool { return len(a.has()) == 256 })
				w.check("before the move")
				before := map[leasehold.Key]Lease{}
				for _, key := range keys() {
					before[key], _ = a.owner.Check(key)
				}
				n.counts("10.0.0.2:8080", asConfigured)
				moving := <-stopped
				w.check("after the stop")
				if _, paused := w.count(); paused != len(moving) || a.owner.Held(before[moving[0]]) {
					t.Errorf("%d workers pause, want %d; held: %t", paused, len(moving), a.owner.Held(before[moving[0]]))
				}
				time.Sleep(6 * time.Second) // StopTimeout is 5s
				w.check("after the move has failed")
				if running, _ := w.count(); running != 256 || !a.owner.Held(before[moving[0]]) {
					t.Errorf("%d workers run after the move has failed; held: %t", running, a.owner.Held(before[moving[0]]))
				}
				healed.Store(true)
				if name != "managers fail" {
					c := n.counts("10.0.0.3:8080", asConfigured) // the leader plans moves again
					newCrowd(t, a, c).until(time.Minute, func() bool { return len(c.has()) > 50 })
				}
				time.Sleep(30 * time.Second)
				w.check("after a move or an outage")
				closed, cancel := context.WithCancel(t.Context())
				cancel()
				_ = a.owner.Close(closed)
				w.ended.Wait()
				w.check("after Close")
			})
		})
	}
}
