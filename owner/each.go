package owner

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// Each calls work once for each lease that this process holds, concurrently, and for each lease that it is
// granted later. It is for an application that acts by itself instead of for
// requests, such as a consumer of a partitioned queue.
//
// The context of a call ends as soon as the lease is not served any more: it has ended or is suspended, or
// a part of its range has. Then work must return. It is called again when the rest of the range, or
// the lease, is served again, but never twice at a time for a key.
//
// Before a range moves to another owner (see [Mover]), [Export.Stop] ends the context and waits until
// work has returned, for [Mover.StopTimeout] at most, and fails after that, so that the range does not move. The lease
// is held meanwhile, so work can complete what it has begun. If the move fails, work is called again.
//
// In all other cases the next owner may act before work has returned: after a crash or a
// pause of this process, or if it has no Mover. So an effect outside of the process
// must carry the lease's generation as a fencing token.
//
// If work returns an error although its lease is served, it is logged, and work is called again after a
// backoff of 100 ms to 30 s. If it returns nil, it is called again only after a part of the range has moved, or the lease was
// suspended and has resumed.
//
// Each returns the cause of ctx when that ends, and nil when the owner was closed, after all calls have
// returned. Without a Mover, end ctx and wait for Each before [Owner.Close].
func Each(ctx context.Context, o *Owner, work func(ctx context.Context, lease leasehold.Lease) error) error {
	ctx, cancel := context.WithCancel(ctx)
	e := &each{owner: o, work: work, calls: make(map[leasehold.Lease]*call), returned: make(chan result)}
	defer func() {
		cancel()
		for range e.running {
			<-e.returned
		}
	}()
	for {
		h, resumed := o.holding.Load(), o.calls.resumed()
		wake := e.update(ctx, h)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-o.done:
			return nil
		case r := <-e.returned:
			e.end(r)
		case <-h.superseded:
		case <-resumed:
		case <-wake:
		}
	}
}

// each is a call of Each. Only its goroutine accesses the fields.
type each struct {
	owner    *Owner
	work     func(context.Context, leasehold.Lease) error
	calls    map[leasehold.Lease]*call // that run, or are complete
	running  int
	returned chan result
}

// A call is a call of work, with its repetitions after errors.
type call struct {
	lease    leasehold.Lease
	ctx      context.Context
	cancel   context.CancelFunc
	complete bool          // work has returned nil while its lease was served; set by end
	ended    chan struct{} // closed when work has returned
}

type result struct {
	*call
	complete bool
}

// update ends the calls whose leases are not served, and starts those that are missing. The channel receives when
// the leases of the holding reach their deadline.
func (e *each) update(ctx context.Context, h *holding) (wake <-chan time.Time) {
	served := e.owner.served(h)
	for l, c := range e.calls {
		if slices.Contains(served, l) {
			continue
		}
		if c.cancel(); c.complete {
			delete(e.calls, l)
		}
	}
	for _, l := range served {
		if !e.occupied(l) {
			e.start(ctx, l)
		}
	}
	if len(served) > 0 {
		wake = time.After(e.owner.clock.Until(h.until))
	}
	return wake
}

// served returns the leases of a holding on which checks succeed now.
func (o *Owner) served(h *holding) []leasehold.Lease {
	if now := o.clock.Now(); now >= h.until || o.detector.Epoch(now) != h.epoch {
		return nil
	}
	return h.areas.held
}

// occupied reports whether there is a call for the lease, or one that must return first.
func (e *each) occupied(l leasehold.Lease) bool {
	if e.calls[l] != nil {
		return true
	}
	for other := range e.calls {
		if other.Range.Overlaps(l.Range) {
			return true
		}
	}
	return false
}

func (e *each) start(ctx context.Context, l leasehold.Lease) {
	c := &call{lease: l, ended: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(ctx)
	o := e.owner
	if !o.calls.add(c) {
		c.cancel()
		return // the range is about to move
	}
	// A move that has ended before add was called has published its result before.
	if !slices.Contains(o.served(o.holding.Load()), l) {
		o.calls.remove(c)
		return // the next holding follows
	}
	e.calls[l] = c
	e.running++
	go func() {
		complete := e.run(c)
		o.calls.remove(c)
		e.returned <- result{c, complete}
	}()
}

func (e *each) end(r result) {
	e.running--
	if r.call.complete = r.complete; !r.complete {
		delete(e.calls, r.lease)
	}
}

// The backoff after an error of work.
const (
	minBackoff = 100 * time.Millisecond
	maxBackoff = 30 * time.Second
)

// run calls work until it returns nil, which it reports, or the lease is not served.
func (e *each) run(c *call) (complete bool) {
	for backoff := minBackoff; ; backoff = min(2*backoff, maxBackoff) {
		begun := time.Now()
		err := e.work(c.ctx, c.lease)
		if c.ctx.Err() != nil || err == nil {
			return c.ctx.Err() == nil
		}
		if time.Since(begun) > maxBackoff {
			backoff = minBackoff
		}
		e.owner.notes.logger.Warn("work on a range has failed", "range", c.lease.Range, "generation", c.lease.Generation, "retry in", backoff, "why", err)
		select {
		case <-c.ctx.Done():
			return false
		case <-time.After(backoff):
		}
	}
}

// calls are the calls of all uses of Each. A range that is about to move has none.
type calls struct {
	mu      sync.Mutex
	running map[*call]struct{}
	leaving map[protocol.Ticket]leasehold.Range
	resume  chan struct{} // closed when leaving becomes smaller
}

func newCalls() *calls {
	return &calls{running: make(map[*call]struct{}), leaving: make(map[protocol.Ticket]leasehold.Range), resume: make(chan struct{})}
}

// resumed returns a channel that is closed when calls may start on the range of a move that has ended.
func (c *calls) resumed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resume
}

// add registers a call, unless its range is about to move.
func (c *calls) add(one *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.leaving {
		if r.Overlaps(one.lease.Range) {
			return false
		}
	}
	c.running[one] = struct{}{}
	return true
}

func (c *calls) remove(one *call) {
	one.cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, one)
	close(one.ended)
}

// leave ends the calls on a range until the end of its move, and waits until they have returned. The context is
// that of the move. It ends before moved is called, so if the range was added after that, the context has ended.
func (c *calls) leave(ctx context.Context, t protocol.Ticket, r leasehold.Range, most time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, most, leasehold.Errorf(opMove, leasehold.ErrUnavailable, r.String(), "work of Each has not returned within %v after the end of its context", most))
	defer cancel()
	for _, one := range c.cancel(t, r) {
		select {
		case <-one.ended:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		c.moved(t)
		return context.Cause(ctx)
	}
	return nil
}

func (c *calls) cancel(t protocol.Ticket, r leasehold.Range) (overlapping []*call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaving[t] = r
	for one := range c.running {
		if one.lease.Range.Overlaps(r) {
			one.cancel()
			overlapping = append(overlapping, one)
		}
	}
	return overlapping
}

// moved allows calls on the range of a move that has ended, if it is still served.
func (c *calls) moved(t protocol.Ticket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, found := c.leaving[t]; found {
		delete(c.leaving, t)
		close(c.resume)
		c.resume = make(chan struct{})
	}
}
