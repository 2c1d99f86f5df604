//go:build unix

package e2e

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// everyMillisecond calls f until stop is called. stop waits for the last call, and may be
// called more than once.
func everyMillisecond(f func()) (stop func()) {
	var running sync.WaitGroup
	stopped := make(chan struct{})
	running.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stopped:
				return
			case <-tick.C:
				f()
			}
		}
	})
	return sync.OnceFunc(func() {
		close(stopped)
		running.Wait()
	})
}

// steady fails the test if an owner does not hold all its leases, with the same generations,
// at every instant until stop is called or the test ends. It starts when the owner holds the
// leases of the table.
func (g *group) steady(t *testing.T, ns string, owners ...*owner.Owner) (stop func()) {
	t.Helper()
	var stops []func()
	for _, o := range owners {
		var want []leasehold.Lease
		eventually(t, "the owner holds its leases", func() error {
			want = g.leasesOf(t, ns, string(o.Name()))
			return sameLeases(want, o.Leases())
		})
		if len(want) == 0 {
			t.Fatalf("owner %s has no leases to keep", o.Name())
		}
		last, failed := time.Now(), false
		stops = append(stops, everyMillisecond(func() {
			pause := time.Since(last)
			last = time.Now()
			if have := missing(o, want); have != nil && !failed {
				failed = true // report once
				t.Errorf("owner %s does not hold %v (previous check %v before)", o.Name(), have, pause)
			}
		}))
	}
	stop = func() {
		for _, stop := range stops {
			stop()
		}
	}
	t.Cleanup(stop)
	return stop
}

// missing returns the leases of which an owner does not hold the first or the last key.
func missing(o *owner.Owner, want []leasehold.Lease) (gone []leasehold.Lease) {
	for _, l := range want {
		for _, key := range []leasehold.Key{l.Range.Start, l.Range.Last()} {
			if have, ok := o.Check(key); !ok || have.Generation != l.Generation || !o.Held(have) {
				gone = append(gone, l)
				break
			}
		}
	}
	return gone
}

// sameLeases returns an error if two sets of leases differ.
func sameLeases(want, have []leasehold.Lease) error {
	if slices.Equal(want, have) {
		return nil
	}
	return leasehold.Errorf("compare", leasehold.Other, "leases", "want %v, have %v", want, have)
}

// exclusive fails the test if two owners hold the same key at the same instant, until the
// test ends.
func exclusive(t *testing.T, owners ...*owner.Owner) {
	keys := probes()
	failed := false
	t.Cleanup(everyMillisecond(func() {
		for _, key := range keys {
			if a, b := bothHave(owners, key); a != nil && !failed {
				failed = true
				t.Errorf("key %v is owned by %s and %s at the same time", key, a.Name(), b.Name())
			}
		}
	}))
}

// bothHave returns two owners that held the key at the same instant: the first held it
// before the second one's Check, and without a gap until after it.
func bothHave(owners []*owner.Owner, key leasehold.Key) (first, second *owner.Owner) {
	var lease owner.Lease
	for _, o := range owners {
		l, ok := o.Check(key)
		switch {
		case !ok:
		case first != nil && first.Held(lease):
			return first, o
		default:
			first, lease = o, l
		}
	}
	return nil, nil
}

// neverHeld fails the test if an owner holds any key before stop is called.
func neverHeld(t *testing.T, owners ...*owner.Owner) (stop func()) {
	failed := false
	stop = everyMillisecond(func() {
		for _, o := range owners {
			if have := o.Leases(); len(have) > 0 && !failed {
				failed = true
				t.Errorf("owner %s holds %v while no manager can grant leases", o.Name(), have)
			}
		}
	})
	t.Cleanup(stop)
	return stop
}
