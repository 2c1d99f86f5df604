package owner

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
)

// alone returns an owner with promises and without a driver.
func alone(t *testing.T, most time.Duration, computer clock.Source) *Owner {
	t.Helper()
	c := clock.New()
	o, err := newOwner(Config{
		Namespace: testNamespace, Managers: []string{leaderAddr}, Addr: "10.0.0.1:8080", Credentials: insecure.NewCredentials(),
		MaxPromise: most, WaitForPredecessor: true,
	}, c, clock.NewDetectorOf(c, computer))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.link.Close)
	return o
}

// If the holding changes during Promise, the promise is about the later holding, and not
// longer than that allows: the publisher of the change may not have read
// it. The publisher of every later change reads it.
func TestPromiseWhileLeasesChange(t *testing.T) {
	const most = time.Minute
	after := []leasehold.Lease{lease(0, 2)}
	for name, c := range map[string]struct {
		first  time.Duration // remaining time of the leases when the promise is made
		leases []leasehold.Lease
		left   time.Duration // remaining time of the later leases
		want   time.Duration
	}{
		"others":              {time.Hour, after, time.Hour, most},
		"others, for longer":  {10 * time.Second, after, time.Hour, 5 * time.Second},
		"others, for shorter": {time.Hour, after, time.Second, time.Second / 2},
		"others, for nothing": {time.Hour, after, 0, 0},
		"none":                {time.Hour, nil, time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := alone(t, most, &laptop{})
				now := o.clock.Now()
				o.publish(&machine.View{Leases: []leasehold.Lease{lease(0, 1)}, Until: now.Add(c.first)})
				kept := o.promises.make(o.holding.Load(), now)
				if found := mono.Instant(o.promises.until.Load()); kept != min(most, c.first/2) || found != now.Add(kept) {
					t.Errorf("at %v the promise is %v, recorded until %v", now, kept, found)
				}
				o.publish(&machine.View{Leases: c.leases, Until: now.Add(c.left)})
				leases, d := o.promised(now, kept)
				want := c.leases
				if c.want == 0 {
					want = nil
				}
				if d != c.want || !slices.Equal(leases, want) {
					t.Errorf("promise of %v about %v, want %v about %v", d, leases, c.want, want)
				}
			})
		})
	}
}

// Of many promises the longest counts, in any order.
func TestPromisesAreMonotonic(t *testing.T) {
	var p promises
	p.raise(2)
	p.raise(1)
	if got := p.until.Load(); got != 2 {
		t.Errorf("promises until 2 and then until 1 are recorded until %d", got)
	}
	var next atomic.Int64
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			for range 50_000 {
				until := next.Add(1)
				p.raise(mono.Instant(until))
				if got := p.until.Load(); got < until {
					t.Errorf("promise until %d is recorded until %d", until, got)
					return
				}
			}
		})
	}
	asking.Wait()
}

// After a suspension of the computer there are no promises: the
// leases may have expired.
func TestNoPromiseAfterSuspension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var computer laptop
		o := alone(t, testPromise, &computer)
		o.publish(&machine.View{Leases: []leasehold.Lease{lease(0, 1)}, Until: mono.Never})
		if leases, d := o.Promise(); len(leases) != 1 || d != testPromise {
			t.Errorf("promise of %v about %d leases, want %v about one", d, len(leases), testPromise)
		}
		computer.suspend(time.Hour)
		time.Sleep(20 * time.Microsecond) // before the detector's next check
		if leases, d := o.Promise(); len(leases) > 0 || d != 0 {
			t.Errorf("after a suspension: promise of %v about %d leases", d, len(leases))
		}
	})
}

// promises.await does not block, for any number of calls,
// and records the newest number.
func TestAwaitingPromisesDoesNotBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // detects a deadlock
		p := promises{signal: make(chan struct{}, 1)}
		for number := range uint64(3) {
			p.await(number + 1)
		}
		<-p.signal
		if got := p.awaited.Load(); got != 3 {
			t.Errorf("number %d, want 3", got)
		}
	})
}
