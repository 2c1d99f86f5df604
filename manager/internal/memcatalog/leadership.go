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

// campaign wants to lead, for as long as we are wanted to.
func (g *Group) campaign() {
	for g.wanting.Err() == nil {
		lease, err := g.node.Acquire(g.wanting, leadership)
		if err != nil {
			if g.wanting.Err() == nil {
				g.log.Warn("the lease of leadership cannot be asked for, and is asked for again later", "why", err)
				pause(g.wanting, g.cfg.Lease)
			}
			continue
		}
		switch term := leasehold.Term(lease.Fence()); {
		case term <= leasehold.Term(g.above.Load()):
			g.release(lease) // we were told while we waited for it
			pause(g.wanting, g.cfg.Lease/12)
		case term > storage.LastTerm:
			g.log.Error("this manager does not lead: its wall clock is centuries ahead, and terms are made of that", "term", term)
			g.release(lease)
			pause(g.wanting, time.Minute)
		default:
			g.tenure(lease)
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

// tenure has the lease, and tells what becomes of it until it has it no more.
func (g *Group) tenure(lease *flease.Lease) {
	term := leasehold.Term(lease.Fence())
	g.ledSince.Store(int64(g.cfg.Clock.Now()))
	g.lease.Store(lease)
	begun := time.Now()
	g.logs.begin(term)
	g.replica.begin(term)
	failpoint.Here("memcatalog/before-appointed")
	until := g.cfg.Clock.Now().Add(lease.Remaining())
	g.cfg.Hear(bylease.Appointed{Term: term, Until: until})
	// A lease is renewed after a third of its time, and nobody says so.
	look := time.NewTicker(g.cfg.Lease / 12)
	defer look.Stop()
	for going := true; going; {
		select {
		case <-lease.Done():
			going = false
		case <-g.ctx.Done():
			going = false // Close gives it up
		case <-g.more:
			going = g.givenUp.Load() < uint64(term)
		case <-look.C:
			if g.useless(begun) {
				begun = time.Now()
				g.cfg.Hear(bylease.Dismissed{}) // when it has stepped down we are told
			}
			// The clock is read first: what is left is counted from then on, or later.
			if later := g.cfg.Clock.Now().Add(lease.Remaining()); later.Sub(until) > g.cfg.Lease/24 {
				until = later
				g.cfg.Hear(bylease.Extended{Term: term, Until: until})
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
	g.cfg.Hear(bylease.Dismissed{})
	if g.replica.deaf() {
		pause(g.wanting, 2*g.cfg.Lease) // another may have better luck
	}
}

// useless reports whether we have led for a while, and are as far from knowing the
// namespaces as at the beginning, because we reach too few of the others.
func (g *Group) useless(since time.Time) bool {
	return time.Since(since) > patience*g.cfg.Lease && g.replica.deaf()
}

// patience is for how many leases a leader may be of no use.
const patience = 5

// release gives the lease up. If too few hear of it, it runs out.
func (g *Group) release(lease *flease.Lease) {
	ctx, cancel := context.WithTimeout(g.ctx, g.cfg.Lease)
	defer cancel()
	if err := lease.Release(ctx); err != nil {
		g.log.Debug("the others have to wait until the lease of leadership has run out", "why", err)
	}
}
