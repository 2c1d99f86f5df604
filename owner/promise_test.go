package owner

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
)

const testPromise = time.Second

// promising returns the configuration of an owner with promises.
func (n *network) promising(addr string) Config {
	cfg := n.config(addr)
	cfg.MaxPromise, cfg.WaitForPredecessor = testPromise, true
	return cfg
}

// A believer is a process that relies on promises of an owner. It requests them as often as
// possible, and measures on its own clock.
type believer struct {
	owner  *Owner
	leases []leasehold.Lease
	until  time.Time
}

func (b *believer) request() {
	sent := time.Now()
	if leases, d := b.owner.Promise(); d > 0 {
		b.leases, b.until = leases, sent.Add(d)
	}
}

func (b *believer) owns(key leasehold.Key) bool {
	if !time.Now().Before(b.until) {
		return false
	}
	for _, l := range b.leases {
		if l.Range.Contains(key) {
			return true
		}
	}
	return false
}

// both returns the number of keys with a valid promise that another owner holds.
func both(b *believer, o *Owner) (n int) {
	for _, k := range keys() {
		if _, ok := o.Check(k); ok && b.owns(k) {
			n++
		}
	}
	return n
}

// If a lease ends early, its promises stay valid, and
// the next owner gets it soon after they have expired.
func TestPromisesAreEnforced(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, n *network, o *Owner, computer *laptop){
		"recalled": func(*testing.T, *network, *Owner, *laptop) {}, // by an owner that joins
		"closed": func(t *testing.T, _ *network, o *Owner, _ *laptop) {
			go func() {
				if err := o.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}()
		},
		"slept": func(_ *testing.T, _ *network, _ *Owner, computer *laptop) { computer.suspend(50 * time.Millisecond) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				n.lead(manager.Config{})
				computer, c := &laptop{}, clock.New()
				o, err := newOwner(n.promising("10.0.0.1:8080"), c, clock.NewDetectorOf(c, computer))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := o.join(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				b := &believer{owner: o}
				b.request()
				if len(b.leases) == 0 {
					t.Fatal("no promise")
				}
				requested := time.Now()
				go func() { // joins while the promise is valid
					end(t, n, o, computer)
				}()
				next, err := Join(t.Context(), n.config("10.0.0.2:8080"))
				if err != nil {
					t.Fatal(err)
				}
				for holds(next) == 0 && time.Since(requested) < time.Minute {
					time.Sleep(time.Millisecond)
					if got := both(b, next); got > 0 {
						t.Fatalf("%v after the promise another owner holds %d of its keys", time.Since(requested), got)
					}
				}
				took := time.Since(requested)
				if took < testPromise*5/6 || took > testPromise+time.Second {
					t.Errorf("another owner gets the keys %v after a promise of %v", took, testPromise)
				}
				if err := o.Close(t.Context()); err != nil {
					t.Error(err)
				}
				if err := next.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A promise is bounded by the remaining time of the leases, and accounts for slower
// clocks. Without leases there is no promise.
func TestPromiseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		_, stop := n.lead(manager.Config{}) // drift 1.2, leases of 10 s
		o := mustJoin(t, n.promising("10.0.0.1:8080"))
		leases, d := o.Promise()
		if want := testPromise * 5 / 6; len(leases) == 0 || d.Round(time.Microsecond) != want.Round(time.Microsecond) {
			t.Errorf("promise of %v about %d leases, want %v", d, len(leases), want)
		}
		stop()
		until := time.Duration(o.holding.Load().until - o.clock.Now())
		time.Sleep(until - 600*time.Millisecond)
		if _, d := o.Promise(); d.Round(time.Microsecond) != 250*time.Millisecond {
			t.Errorf("promise of %v, want half of the remaining 600ms, less the drift", d)
		}
		time.Sleep(600 * time.Millisecond)
		if leases, d := o.Promise(); d != 0 || leases != nil {
			t.Errorf("promise of %v about expired leases: %v", d, leases)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = o.Close(ctx) // without an ack
	})
}

// Without MaxPromise there are no promises, and Close does not wait.
func TestNoPromises(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.lead(manager.Config{})
		o := mustJoin(t, n.config("10.0.0.1:8080"))
		if leases, d := o.Promise(); d != 0 || leases != nil {
			t.Errorf("promise of %v: %v", d, leases)
		}
		began := time.Now()
		if err := o.Close(t.Context()); err != nil || time.Since(began) > 100*time.Millisecond {
			t.Errorf("closed after %v: %v", time.Since(began), err)
		}
	})
}
