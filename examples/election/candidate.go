package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/flease"
)

// A candidate leads now and then.
type candidate struct {
	node  *flease.Node
	store store
	lease time.Duration
	say   func(format string, args ...any)
}

// leadership is the resource: whoever has its lease leads.
const leadership = "leader"

// run wants to lead until ctx ends, or another process runs as the same member.
func (c *candidate) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	var following sync.WaitGroup
	following.Go(func() { c.follow(ctx) })
	defer following.Wait()
	defer stop()
	for {
		lease, err := c.node.Acquire(ctx, leadership) // waits for as long as another leads
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		why := c.lead(ctx, lease)
		c.say("I lead no more: %v", why)
		// Others wait, and there is no queue between members: whoever asks again at
		// once is the first. So it lets them.
		if lease.Release(ctx) == nil {
			pause(ctx, c.lease)
		}
	}
}

// lead acts as the leader, and returns why it does so no more.
func (c *candidate) lead(ctx context.Context, lease *flease.Lease) error {
	c.say("I lead, with fence %d", lease.Fence())
	ctx, cancel := lease.Context(ctx) // what takes long ends with the lease
	defer cancel()
	for n := 1; ; n++ {
		// Before each act: it may be over, and nobody has told us yet.
		if !lease.Valid() {
			return context.Cause(ctx)
		}
		// We may be stopped right here, for longer than the lease. So the store gets
		// the fence, and refuses who comes too late.
		switch err := c.store.write(ctx, lease.Fence(), entry{Leader: uint32(c.node.Self()), Number: n}); {
		case errors.Is(err, errStale):
			return err
		case err != nil:
			c.say("the ledger was not written: %v", err)
		}
		if !pause(ctx, time.Second) {
			return context.Cause(ctx)
		}
	}
}

// follow says who leads, as far as this member knows.
func (c *candidate) follow(ctx context.Context) {
	for holder, err := range c.node.Watch(ctx, leadership) {
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			c.say("%v", err)
		case holder.Unsure:
			c.say("who leads is not known yet")
		case holder.ID == 0:
			c.say("nobody leads")
		case holder.ID != c.node.Self():
			c.say("member %d leads, with fence %d", holder.ID, holder.Fence)
		}
	}
}

// pause waits, and reports whether it was for the whole time.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
