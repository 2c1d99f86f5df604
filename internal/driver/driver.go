// Package driver joins a machine with the time that passes and the events that
// come from elsewhere. It is the only place where a machine runs: one
// goroutine, one timer, one bounded queue.
package driver

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/mono"
)

// A Machine decides. See docs/ARCHITECTURE.md.
type Machine[E, A any] interface {
	Step(now mono.Instant, event E) (actions []A, wake mono.Instant)
	Advance(now mono.Instant) (actions []A, wake mono.Instant)
}

// A Driver runs one machine. Post and Do may be called from many goroutines.
type Driver[E, A any] struct {
	clock   *clock.Clock
	machine Machine[E, A]
	act     func(now mono.Instant, actions []A)
	inbox   chan item[E]
	urgent  chan item[E] // comes first
	done    chan struct{}
}

// item is an event for the machine, or something to do between two events.
type item[E any] struct {
	event E
	do    func(now mono.Instant)
}

// New returns a driver that is not running yet. Act carries out what the
// machine decides, on the driver's goroutine: it must not block, and must not
// keep the slice. Queue bounds the events that wait.
func New[E, A any](c *clock.Clock, m Machine[E, A], queue int, act func(now mono.Instant, actions []A)) *Driver[E, A] {
	return &Driver[E, A]{clock: c, machine: m, act: act, inbox: make(chan item[E], queue), urgent: make(chan item[E], queue), done: make(chan struct{})}
}

// Run runs the machine until the context ends. It is called once.
//
// A machine that panics takes the process with it: an invariant is broken, and
// leases that are no longer renewed are safe.
func (d *Driver[E, A]) Run(ctx context.Context) {
	defer close(d.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		in, ok := d.next(ctx, timer.C)
		if !ok {
			return
		}
		now := d.clock.Now()
		wake := d.step(now, in)
		timer.Reset(max(0, wake.Sub(d.clock.Now())))
	}
}

// next returns what comes next; nil if that is the passing of time.
// It reports false when the context has ended.
func (d *Driver[E, A]) next(ctx context.Context, timer <-chan time.Time) (*item[E], bool) {
	select {
	case in := <-d.urgent:
		return &in, ctx.Err() == nil
	default:
	}
	select {
	case <-ctx.Done():
		return nil, false
	case <-timer:
		return nil, true
	case in := <-d.urgent:
		return &in, true
	case in := <-d.inbox:
		return &in, true
	}
}

func (d *Driver[E, A]) step(now mono.Instant, in *item[E]) mono.Instant {
	if in != nil && in.do == nil {
		actions, wake := d.machine.Step(now, in.event)
		d.act(now, actions)
		return wake
	}
	if in != nil {
		in.do(now)
	}
	actions, wake := d.machine.Advance(now)
	d.act(now, actions)
	return wake
}

// Post hands an event to the machine. It waits while the queue is full, and
// reports false if the context or the driver ended first.
func (d *Driver[E, A]) Post(ctx context.Context, event E) bool {
	return d.put(ctx, d.inbox, item[E]{event: event})
}

// PostUrgent is Post for an event that must not wait behind others: what a
// leader hears from its store decides whether it still leads, and a thousand
// owners that speak at once must not keep it from hearing it.
func (d *Driver[E, A]) PostUrgent(ctx context.Context, event E) bool {
	return d.put(ctx, d.urgent, item[E]{event: event})
}

// Offer hands an event to the machine if there is room for it.
func (d *Driver[E, A]) Offer(event E) bool {
	select {
	case d.inbox <- item[E]{event: event}:
		return true
	default:
		return false
	}
}

// Do calls f on the driver's goroutine, between two events, and waits for it:
// f may read the machine. It fails if the context or the driver ended first; f
// may then still be called.
func (d *Driver[E, A]) Do(ctx context.Context, f func(now mono.Instant)) error {
	called := make(chan struct{})
	ok := d.put(ctx, d.urgent, item[E]{do: func(now mono.Instant) {
		defer close(called)
		f(now)
	}})
	if ok {
		select {
		case <-called:
			return nil
		case <-ctx.Done():
		case <-d.done:
		}
	}
	if err := ctx.Err(); err != nil {
		return &leasehold.Error{Op: "ask", Kind: leasehold.Unavailable, Err: err}
	}
	return &leasehold.Error{Op: "ask", Kind: leasehold.Closed}
}

func (d *Driver[E, A]) put(ctx context.Context, queue chan<- item[E], in item[E]) bool {
	select {
	case queue <- in:
		return true
	case <-ctx.Done():
	case <-d.done:
	}
	return false
}

// Waiting returns how many events wait for the machine. It may be called from any
// goroutine.
func (d *Driver[E, A]) Waiting() int { return len(d.inbox) + len(d.urgent) }

// Done is closed when Run has returned.
func (d *Driver[E, A]) Done() <-chan struct{} { return d.done }
