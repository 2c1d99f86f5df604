package owner

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// Promise returns the leases that are held now, sorted by range, and for how long
// somebody else may rely on them: it is for answers that leave the process, and
// arrive when they may be out of date.
//
// Check is about the moment of the call. A moment later the lease may have been
// called back by the leader, or given back by Close, and another server may act on
// its keys. An answer that is sent to another process would then be wrong before
// it is read. So what Promise returns is kept: whatever becomes of the leases, and
// although Check and Held fail at once, the leader does not hear that they are
// free before the time is over.
//
// The time counts from this call. Whoever asked takes it from a moment before it
// sent its question, on its own clock, and so need not know how long the answer
// was under way. That its clock may be slower than ours, within the drift bound of
// the namespace, is allowed for. A computer that was suspended is not: where the
// asker's clock stands still in that time, it must find out by itself.
//
// It is at most [Config.MaxPromise] and, so that leases can be renewed after one of
// them was held back, at most half of what is left of them. It is 0 if nothing is
// held. Promise may be called from many goroutines at once, takes no lock, and
// costs what Leases costs.
func (o *Owner) Promise() ([]leasehold.Lease, time.Duration) {
	now := o.clock.Now()
	kept := o.promises.make(o.holding.Load(), now)
	return o.promised(now, kept)
}

// promised returns what a promise is about that was made at now, and for how long
// it may be relied upon. What is held is looked at again, now that the promise is
// made: whoever publishes less than this does so later, and finds the promise.
func (o *Owner) promised(now mono.Instant, kept time.Duration) ([]leasehold.Lease, time.Duration) {
	h := o.holding.Load()
	kept = min(kept, o.promises.bound(h, now))
	if kept <= 0 || len(h.areas.held) == 0 || o.detector.Epoch(o.clock.Now()) != h.epoch {
		return nil, 0
	}
	return slices.Clone(h.areas.held), shrink(kept, h.drift)
}

// shrink returns the time that a clock may count which is slower than ours by as
// much as the drift bound allows, while d passes on ours.
func shrink(d time.Duration, f mono.Drift) time.Duration {
	if !(f > 1) {
		return d
	}
	return time.Duration(float64(d) / float64(f))
}

// promises are until when somebody may rely on what was published.
type promises struct {
	most  time.Duration // Config.MaxPromise
	until atomic.Int64  // a mono.Instant; it never goes back

	// asked is the newest number that the machine waits for, and has been put
	// there after what it is about was published.
	asked atomic.Uint64
	nudge chan struct{} // has room for one
}

// bound is how long a promise may be kept that is made at now.
func (p *promises) bound(h *holding, now mono.Instant) time.Duration {
	return min(p.most, h.until.Sub(now)/2)
}

// make makes a promise at now, about what is held, and returns how long it will be
// kept.
func (p *promises) make(h *holding, now mono.Instant) time.Duration {
	kept := p.bound(h, now)
	if kept > 0 {
		p.raise(now.Add(kept))
	}
	return kept
}

// raise keeps promises until then, or for longer if that was promised before.
func (p *promises) raise(until mono.Instant) {
	for {
		old := p.until.Load()
		if old >= int64(until) || p.until.CompareAndSwap(old, int64(until)) {
			return
		}
	}
}

// settle has the machine told when what was published before this is not relied
// upon any more. It does not wait.
func (p *promises) settle(number uint64) {
	p.asked.Store(number)
	select {
	case p.nudge <- struct{}{}:
	default: // the number is looked at after the one that is there was taken
	}
}

// keepPromises tells the machine when promises are over. A promise that is made
// while it waits is about what was published since, and is not waited for.
func (o *Owner) keepPromises() {
	for {
		select {
		case <-o.promises.nudge:
		case <-o.ctx.Done():
			return
		}
		number := o.promises.asked.Load()
		if !o.sleepUntil(o.ctx, mono.Instant(o.promises.until.Load())) {
			return
		}
		o.driver.Post(o.ctx, machine.Settled{Number: number})
	}
}

// sleepUntil reports false if the context has ended first.
func (o *Owner) sleepUntil(ctx context.Context, end mono.Instant) bool {
	for now := o.clock.Now(); now < end; now = o.clock.Now() {
		select {
		case <-time.After(end.Sub(now)):
		case <-ctx.Done():
			return false
		}
	}
	return true
}
