package owner

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// Promise returns the leases that are held now, sorted by range, and for how long
// other processes may rely on them. It is for responses that check keys for another process.
//
// A result of Check may be stale when it reaches another process: the lease may have been
// recalled by the leader or released by Close, and another server may act on
// its keys. So the owner enforces a promise: if a lease ends,
// Check and Held fail at once, but the leader receives the release
// only after the promise has expired.
//
// The duration counts from this call. The other process counts it from an instant before it
// sent its request, on its own clock, so the delay of the response does not matter.
// The duration accounts for a slower clock, within the drift bound of
// the namespace. It does not account for a suspension of the other computer: if its
// clock stands still, that process must detect it.
//
// It is at most [Config.MaxPromise] and, so that the other leases can be renewed while one of
// them waits for a promise, at most half of the time to their deadline. It is 0 without
// leases. Promise is safe for concurrent use, takes no lock, and
// costs the same as Leases.
func (o *Owner) Promise() ([]leasehold.Lease, time.Duration) {
	now := o.clock.Now()
	kept := o.promises.make(o.holding.Load(), now)
	return o.promised(now, kept)
}

// EndPromises ends all promises at once: leases that have ended are released without waiting for them. The
// caller must have proof that no process relies on a promise any more, now or later: all processes that can
// have received one have ended. Promise must not be called for another process afterwards.
func (o *Owner) EndPromises() { o.promises.end() }

// promised returns the leases of a promise that was made at now, and its duration on other
// clocks. It reads the holding again after the promise is recorded: a holding
// with fewer leases is published later, and its publisher reads the promise.
func (o *Owner) promised(now mono.Instant, kept time.Duration) ([]leasehold.Lease, time.Duration) {
	h := o.holding.Load()
	kept = min(kept, o.promises.bound(h, now))
	if kept <= 0 || len(h.areas.held) == 0 || o.detector.Epoch(o.clock.Now()) != h.epoch {
		return nil, 0
	}
	return slices.Clone(h.areas.held), shrink(kept, h.view.Drift)
}

// shrink returns the duration that the slowest clock within the drift bound may count while d
// passes on this clock.
func shrink(d time.Duration, f mono.Drift) time.Duration {
	if !(f > 1) {
		return d
	}
	return time.Duration(float64(d) / float64(f))
}

// promises is the instant at which the last promise expires.
type promises struct {
	max   time.Duration // Config.MaxPromise
	until atomic.Int64  // a mono.Instant; never decreases

	// awaited is the number of the machine's newest Settle action. It is written after the
	// view of that action is published.
	awaited atomic.Uint64
	signal  chan struct{} // buffers one signal
	ended   chan struct{} // closed when no process relies on a promise any more
	end     func()        // closes ended, once
}

func newPromises(limit time.Duration) promises {
	ended := make(chan struct{})
	return promises{max: limit, signal: make(chan struct{}, 1), ended: ended, end: sync.OnceFunc(func() { close(ended) })}
}

// bound returns the maximum duration of a promise that is made at now.
func (p *promises) bound(h *holding, now mono.Instant) time.Duration {
	return min(p.max, h.until.Sub(now)/2)
}

// make records a promise about a holding at now, and returns its duration.
func (p *promises) make(h *holding, now mono.Instant) time.Duration {
	kept := p.bound(h, now)
	if kept > 0 {
		p.raise(now.Add(kept))
	}
	return kept
}

// raise extends until; it does not shorten it.
func (p *promises) raise(until mono.Instant) {
	for {
		old := p.until.Load()
		if old >= int64(until) || p.until.CompareAndSwap(old, int64(until)) {
			return
		}
	}
}

// await makes awaitPromises post Settled with this number after all promises that were made
// before have expired. It does not wait.
func (p *promises) await(number uint64) {
	p.awaited.Store(number)
	select {
	case p.signal <- struct{}{}:
	default: // awaitPromises reads the number after it has received the pending signal
	}
}

// awaitPromises posts Settled to the machine when promises have expired. It does not wait for
// promises that are made meanwhile, because they are about later views.
func (o *Owner) awaitPromises() {
	for {
		select {
		case <-o.promises.signal:
		case <-o.ctx.Done():
			return
		}
		number := o.promises.awaited.Load()
		if !o.awaitLastPromise() {
			return
		}
		o.driver.Post(o.ctx, machine.Settled{Number: number})
	}
}

// awaitLastPromise waits until the last promise has expired, or all are ended. It reports false if the owner is
// closed first.
func (o *Owner) awaitLastPromise() bool {
	end := mono.Instant(o.promises.until.Load())
	for now := o.clock.Now(); now < end; now = o.clock.Now() {
		select {
		case <-time.After(o.clock.Until(end)):
		case <-o.promises.ended:
			return true
		case <-o.ctx.Done():
			return false
		}
	}
	return true
}
