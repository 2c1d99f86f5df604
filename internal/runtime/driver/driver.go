// Package driver runs a machine: one step at a time, one timer, bounded event queues.
package driver

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
)

// A Machine is a state machine of the core. See docs/ARCHITECTURE.md.
type Machine[E, A any] interface {
	Step(now mono.Instant, event E) (actions []A, wake mono.Instant)
	Advance(now mono.Instant) (actions []A, wake mono.Instant)
}

// A Driver runs one machine. All methods except Run are safe for concurrent use.
type Driver[E, A any] struct {
	clock   *clock.Clock
	act     func(now mono.Instant, actions []A)
	inbox   chan item[E]
	urgent  chan item[E] // high priority
	low     chan item[E] // low priority
	waiting atomic.Int64 // number of queued items, and of the one between queue and machine
	// beforeLow is the number of inbox items since a low-priority item could run.
	beforeLow int
	done      chan struct{}

	// stepping has one element while a goroutine runs the machine, and guards the following
	// fields. A mutex would stop the virtual clock of synctest for goroutines that wait for it.
	stepping chan struct{}
	machine  Machine[E, A]
	running  bool // between begin and end of Run
	timer    *time.Timer
	timerAt  mono.Instant
	timerSet bool // the timer has not fired
}

// maxBeforeLow is the maximum number of normal events before a queued low-priority one, so that it cannot starve.
const maxBeforeLow = 8

// An item is an event for the machine, or a function to run between two steps.
type item[E any] struct {
	event E
	take  func() E // if set, returns the event when it is processed
	do    func(now mono.Instant)
}

// New returns a driver that is not running yet. act executes the actions of a step before the next step. It must
// neither block nor keep the slice. queue is the capacity of each event queue.
func New[E, A any](c *clock.Clock, m Machine[E, A], queue int, act func(now mono.Instant, actions []A)) *Driver[E, A] {
	return &Driver[E, A]{
		clock: c, machine: m, act: act, done: make(chan struct{}), stepping: make(chan struct{}, 1),
		inbox: make(chan item[E], queue), urgent: make(chan item[E], queue), low: make(chan item[E], queue),
	}
}

// Run runs the machine until the context ends. It is called once.
//
// A panic of the machine ends the process: an invariant is broken, and it is safe to stop renewing
// leases.
func (d *Driver[E, A]) Run(ctx context.Context) {
	defer close(d.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	d.begin(timer)
	defer d.end()
	for {
		in, ok := d.next(ctx, timer.C)
		if !ok {
			return
		}
		d.process(in)
	}
}

func (d *Driver[E, A]) begin(timer *time.Timer) {
	d.stepping <- struct{}{}
	defer func() { <-d.stepping }()
	d.running, d.timer, d.timerAt, d.timerSet = true, timer, d.clock.Now(), true
}

// end waits for a running step and prevents further ones.
func (d *Driver[E, A]) end() {
	d.stepping <- struct{}{}
	defer func() { <-d.stepping }()
	d.running = false
}

// process runs a step for an item, or for the timer if it is nil.
func (d *Driver[E, A]) process(in *item[E]) {
	d.stepping <- struct{}{}
	if in == nil {
		d.timerSet = false // it has fired
	} else {
		defer d.waiting.Add(-1)
	}
	d.run(in)
}

// run runs a step and releases stepping. A machine that has panicked does not run again, even if the caller of Try
// recovers.
func (d *Driver[E, A]) run(in *item[E]) {
	completed := false
	defer func() {
		d.running = d.running && completed
		<-d.stepping
	}()
	if d.running {
		d.setTimer(d.step(d.clock.Now(), in))
	}
	completed = true
}

// setTimer ensures that the timer fires at wake or earlier. An early wake-up is harmless, and cheaper than
// a reset of the timer for each event.
func (d *Driver[E, A]) setTimer(wake mono.Instant) {
	if d.timerSet && d.timerAt <= wake {
		return
	}
	d.timerAt, d.timerSet = wake, true
	d.timer.Reset(max(0, d.clock.Until(wake)))
}

// Try processes an event on the caller's goroutine, including its actions. This saves waking two other goroutines. It
// reports false without effect if the machine is busy or other events are queued.
func (d *Driver[E, A]) Try(event E) bool { return d.try(item[E]{event: event}) }

// TryLowPriority is Try for low-priority events.
func (d *Driver[E, A]) TryLowPriority(take func() E) bool { return d.try(item[E]{take: take}) }

func (d *Driver[E, A]) try(in item[E]) bool {
	select {
	case d.stepping <- struct{}{}:
	default:
		return false
	}
	if !d.running || d.waiting.Load() != 0 {
		<-d.stepping
		return false
	}
	d.run(&in)
	return true
}

// next returns the next item by priority, nil for the timer. It reports false when the context has ended.
func (d *Driver[E, A]) next(ctx context.Context, timer <-chan time.Time) (*item[E], bool) {
	select {
	case in := <-d.urgent:
		return &in, ctx.Err() == nil
	default:
	}
	if d.beforeLow < maxBeforeLow {
		select {
		case <-timer:
			return nil, true
		case in := <-d.inbox:
			d.beforeLow++
			return &in, ctx.Err() == nil
		default:
		}
	}
	d.beforeLow = 0
	select { // the inbox is empty, or maxBeforeLow is reached
	case in := <-d.low:
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
	case in := <-d.low:
		return &in, true
	}
}

func (d *Driver[E, A]) step(now mono.Instant, in *item[E]) mono.Instant {
	if in != nil && in.do == nil {
		event := in.event
		if in.take != nil {
			event = in.take()
		}
		actions, wake := d.machine.Step(now, event)
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

// Post queues an event. It blocks while the queue is full, and reports false if the context or the driver ended
// first.
func (d *Driver[E, A]) Post(ctx context.Context, event E) bool {
	return d.put(ctx, d.inbox, item[E]{event: event})
}

// PostUrgent is Post with high priority: these events run before all others. Store results renew the
// leadership, and must not wait behind the requests of a thousand owners.
func (d *Driver[E, A]) PostUrgent(ctx context.Context, event E) bool {
	return d.put(ctx, d.urgent, item[E]{event: event})
}

// PostLowPriority is Post with low priority: at most maxBeforeLow normal events run before one of these.
// take returns the event when it is processed, so that a newer one can replace a stale one in the meantime.
func (d *Driver[E, A]) PostLowPriority(ctx context.Context, take func() E) bool {
	return d.put(ctx, d.low, item[E]{take: take})
}

// Offer queues an event, or reports false if the queue is full.
func (d *Driver[E, A]) Offer(event E) bool {
	d.waiting.Add(1)
	select {
	case d.inbox <- item[E]{event: event}:
		return true
	default:
		d.waiting.Add(-1)
		return false
	}
}

// Do calls f between two steps and waits for it. f may read the machine. Do fails if the context or the
// driver ends first; f may still be called then.
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
		return &leasehold.Error{Op: "ask", Kind: leasehold.ErrUnavailable, Err: err}
	}
	return &leasehold.Error{Op: "ask", Kind: leasehold.ErrClosed}
}

func (d *Driver[E, A]) put(ctx context.Context, queue chan<- item[E], in item[E]) bool {
	d.waiting.Add(1)
	select {
	case queue <- in:
		return true
	case <-ctx.Done():
	case <-d.done:
	}
	d.waiting.Add(-1)
	return false
}

// Waiting returns the number of queued events.
func (d *Driver[E, A]) Waiting() int { return len(d.inbox) + len(d.urgent) + len(d.low) }

// Done is closed when Run has returned.
func (d *Driver[E, A]) Done() <-chan struct{} { return d.done }
