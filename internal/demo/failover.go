package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A photograph is who held what, and which owners lived, at one time.
type photograph struct {
	ranges []*leaseholdv1.HeldRange
	lives  map[string]int // by name, of the owners that live
}

func (c *cluster) photograph(ctx context.Context) (photograph, error) {
	p := photograph{lives: make(map[string]int)}
	for _, o := range c.owners {
		if life := o.Life(); life > 0 {
			p.lives[o.Name] = life
		}
	}
	var err error
	p.ranges, err = c.admin.ranges(ctx)
	return p, err
}

// photographed is photograph, repeated until somebody answers.
func (c *cluster) photographed(ctx context.Context) (p photograph, err error) {
	err = await(ctx, "looking at the leases", recoveryPatience, func(ctx context.Context) (bool, error) {
		var err error
		p, err = c.photograph(ctx)
		return err == nil, err
	})
	return p, err
}

// survivors returns the owners that have lived ever since.
func (c *cluster) survivors(since photograph) map[string]bool {
	names := make(map[string]bool)
	for _, o := range c.owners {
		if life := o.Life(); life > 0 && life == since.lives[o.Name] {
			names[o.Name] = true
		}
	}
	return names
}

const failoverPatience = 60 * time.Second

// awaitFailover returns who leads in a later term, once every owner that has
// lived since has spoken to it.
func (c *cluster) awaitFailover(ctx context.Context, after leasehold.Term, since photograph) (leadership, error) {
	var led leadership
	err := await(ctx, "waiting for another leader", failoverPatience, func(ctx context.Context) (bool, error) {
		var err error
		if led, err = c.admin.leader(ctx, after); err != nil {
			return false, err
		}
		members, err := c.members(ctx)
		if err != nil {
			return false, err
		}
		for name := range c.survivors(since) {
			if !members[name] {
				return false, fmt.Errorf("%s has not spoken to %s yet", name, c.nameOf(led.leader))
			}
		}
		return true, nil
	})
	return led, err
}

// lostBy counts the leases that were lost until now, as lostSince does. Owners get two
// more turns to say what they do not hold any more.
func (c *cluster) lostBy(ctx context.Context, before photograph) (lost int, err error) {
	pause(ctx, 2*c.cfg.renew())
	err = await(ctx, "comparing the leases", recoveryPatience, func(ctx context.Context) (bool, error) {
		var err error
		lost, err = c.lostSince(ctx, before)
		return err == nil, err
	})
	return lost, err
}

// lostSince counts the leases of owners that have lived all the while which
// ended for another reason than that the policy moved the keys: they ran out,
// or the owner did not know them any more. There is no cause for that but the
// time without a leader.
func (c *cluster) lostSince(ctx context.Context, before photograph) (int, error) {
	after, err := c.admin.ranges(ctx)
	if err != nil {
		return 0, err
	}
	alive := c.survivors(before)
	lost := 0
	for _, held := range before.ranges {
		if !alive[held.GetOwner()] {
			continue
		}
		key, ended := endedWithin(held.GetLease(), after)
		if !ended {
			continue
		}
		cause, err := c.whyEnded(ctx, key, held.GetLease().GetGeneration())
		if err != nil {
			return 0, err
		}
		if cause != leaseholdv1.Cause_CAUSE_RELEASED && cause != leaseholdv1.Cause_CAUSE_MOVED {
			lost++
		}
	}
	return lost, nil
}

// endedWithin finds a key of a lease that is no longer held under it.
func endedWithin(l *leaseholdv1.Lease, after []*leaseholdv1.HeldRange) (leasehold.Key, bool) {
	was := leasehold.Range{Start: leasehold.Key(l.GetStart()), Limit: leasehold.Key(l.GetLimit())}
	for _, a := range after {
		is := leasehold.Range{Start: leasehold.Key(a.GetLease().GetStart()), Limit: leasehold.Key(a.GetLease().GetLimit())}
		both, overlap := was.Intersect(is)
		if overlap && a.GetLease().GetGeneration() != l.GetGeneration() {
			return both.Start, true
		}
	}
	return 0, false
}

// whyEnded returns why the lease with a generation ended on a key.
func (c *cluster) whyEnded(ctx context.Context, key leasehold.Key, generation uint64) (leaseholdv1.Cause, error) {
	entries, err := c.admin.history(ctx, key)
	return causeOf(entries, generation), err
}

// causeOf finds in the history of a key, newest first, why the lease with a
// generation ended. A change that moves it away has the next generation.
func causeOf(entries []*leaseholdv1.HistoryEntry, generation uint64) leaseholdv1.Cause {
	cause := leaseholdv1.Cause_CAUSE_UNSPECIFIED
	for _, e := range entries {
		g := e.GetLease().GetGeneration()
		if g < generation || g == generation && e.GetKind() != leaseholdv1.ChangeKind_CHANGE_KIND_VACATED {
			break // that is how it began
		}
		switch {
		case g == generation:
			return e.GetCause()
		case e.GetKind() == leaseholdv1.ChangeKind_CHANGE_KIND_MOVED:
			cause = leaseholdv1.Cause_CAUSE_MOVED
		default:
			cause = leaseholdv1.Cause_CAUSE_UNSPECIFIED
		}
	}
	return cause
}
