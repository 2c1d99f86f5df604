package memcatalog

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/flease"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/bylease"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
)

// campaign acquires the lease of leadership, leads until it ends, and repeats until Resign.
func (g *Group) campaign() {
	for g.candidacy.Err() == nil {
		lease, err := g.node.Acquire(g.candidacy, leadership)
		if err != nil {
			if g.candidacy.Err() == nil {
				g.log.Warn("acquiring the lease of leadership failed; it is retried", "why", err)
				pause(g.candidacy, g.cfg.Lease)
			}
			continue
		}
		switch term := leasehold.Term(lease.Fence()); {
		case term <= leasehold.Term(g.seenTerm.Load()):
			g.release(lease) // seenTerm was raised while Acquire waited
			pause(g.candidacy, g.cfg.Lease/12)
		case term > storage.LastTerm:
			g.log.Error("this manager does not lead: its wall clock, from which terms are derived, is centuries ahead; set it", "term", term)
			g.release(lease)
			pause(g.candidacy, time.Minute)
		default:
			g.lead(lease)
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// lead runs this manager's leadership: it reports renewals of the lease until the lease ends or
// the manager steps down, and then releases it.
func (g *Group) lead(lease *flease.Lease) {
	term := leasehold.Term(lease.Fence())
	g.ledSince.Store(int64(g.cfg.Clock.Now()))
	g.lease.Store(lease)
	begun := time.Now()
	g.logs.begin(term)
	g.replica.begin(term)
	failpoint.Here("memcatalog/before-appointed")
	until := g.cfg.Clock.Now().Add(lease.Remaining())
	g.cfg.Notify(bylease.Appointed{Term: term, Until: until})
	// A lease is renewed after a third of its duration, without a notification: poll it.
	poll := time.NewTicker(g.cfg.Lease / 12)
	defer poll.Stop()
	for leading := true; leading; {
		select {
		case <-lease.Done():
			leading = false
		case <-g.ctx.Done():
			leading = false // Close releases the lease
		case <-g.stepDown:
			leading = g.releasedTerm.Load() < uint64(term)
		case <-poll.C:
			if g.isolated(begun) {
				begun = time.Now()
				g.cfg.Notify(bylease.Dismissed{}) // StepDown follows
			}
			// The clock is read before Remaining, so that the sum is not too late.
			if later := g.cfg.Clock.Now().Add(lease.Remaining()); later.Sub(until) > g.cfg.Lease/24 {
				until = later
				g.cfg.Notify(bylease.Extended{Term: term, Until: until})
			}
		}
	}
	failpoint.Here("memcatalog/tenure-over")
	g.replica.stepDown()
	g.logs.end()
	if g.ctx.Err() == nil {
		g.release(lease)
	}
	g.lease.Store(nil)
	g.cfg.Notify(bylease.Dismissed{})
	if g.replica.lacksMajority() {
		pause(g.candidacy, 2*g.cfg.Lease) // another manager may reach a majority
	}
}

// isolated reports whether this manager has led for several leases without a majority of
// replies. Flease messages arrive then, and calls do not.
func (g *Group) isolated(since time.Time) bool {
	return time.Since(since) > maxFruitlessLeases*g.cfg.Lease && g.replica.lacksMajority()
}

// maxFruitlessLeases is for how many leases an isolated leader keeps leadership.
const maxFruitlessLeases = 5

// release releases the lease. If the message does not reach a majority, the lease expires.
func (g *Group) release(lease *flease.Lease) {
	ctx, cancel := context.WithTimeout(g.ctx, g.cfg.Lease)
	defer cancel()
	if err := lease.Release(ctx); err != nil {
		g.log.Debug("releasing the lease of leadership failed; it expires instead", "why", err)
	}
}
