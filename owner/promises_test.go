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

// alone returns an owner that makes promises, and that nobody drives.
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

// What is held changes while a promise is made. It is then about what is held after
// that, and for no longer than that allows: who published the change may not have
// found it. From then on whoever publishes a change does find it.
func TestPromiseWhileLeasesChange(t *testing.T) {
	const most = time.Minute
	after := []leasehold.Lease{lease(0, 2)}
	for name, c := range map[string]struct {
		first  time.Duration // what is left of the leases when the promise is made
		leases []leasehold.Lease
		left   time.Duration // what is left of those that follow
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
					t.Errorf("at %v it is made for %v, and found to last until %v", now, kept, found)
				}
				o.publish(&machine.View{Leases: c.leases, Until: now.Add(c.left)})
				leases, d := o.promised(now, kept)
				want := c.leases
				if c.want == 0 {
					want = nil
				}
				if d != c.want || !slices.Equal(leases, want) {
					t.Errorf("%v are promised for %v, want %v for %v", leases, d, want, c.want)
				}
			})
		})
	}
}

// Of many promises the longest is kept, in whichever order they are made.
func TestPromisesNeverGoBack(t *testing.T) {
	var p promises
	p.raise(2)
	p.raise(1)
	if got := p.until.Load(); got != 2 {
		t.Errorf("promised until 2 and then until 1, and kept until %d", got)
	}
	var next atomic.Int64
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			for range 50_000 {
				until := next.Add(1)
				p.raise(mono.Instant(until))
				if got := p.until.Load(); got < until {
					t.Errorf("promised until %d, and kept until %d", until, got)
					return
				}
			}
		})
	}
	asking.Wait()
}

// A computer that was suspended promises nothing, from the first question on: its
// leases may have ended long ago, and nobody here knows it yet.
func TestNoPromiseAfterASleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var computer laptop
		o := alone(t, testPromise, &computer)
		o.publish(&machine.View{Leases: []leasehold.Lease{lease(0, 1)}, Until: mono.Never})
		if leases, d := o.Promise(); len(leases) != 1 || d != testPromise {
			t.Errorf("%d leases are promised for %v, want one for %v", len(leases), d, testPromise)
		}
		computer.suspend(time.Hour)
		time.Sleep(20 * time.Microsecond) // it takes longer to wake up
		if leases, d := o.Promise(); len(leases) > 0 || d != 0 {
			t.Errorf("after a sleep %d leases are promised for %v", len(leases), d)
		}
	})
}

// The machine does not wait for whoever waits for promises, however often it asks,
// and is told of the newest that it has asked for.
func TestSettlingDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where who waits for ever is found out
		p := promises{nudge: make(chan struct{}, 1)}
		for number := range uint64(3) {
			p.settle(number + 1)
		}
		<-p.nudge
		if got := p.asked.Load(); got != 3 {
			t.Errorf("it waits for %d, want 3", got)
		}
	})
}
