// Package driver joins a machine with the time that passes and the events that
// come from elsewhere. It is the only place where a machine runs: one at a time,
// with one timer and bounded queues.
package driver

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
)

// A Machine decides. See docs/ARCHITECTURE.md.
type Machine[E, A any] interface {
	Step(now mono.Instant, event E) (actions []A, wake mono.Instant)
	Advance(now mono.Instant) (actions []A, wake mono.Instant)
}

// A Driver runs one machine. Post, Try and Do may be called from many goroutines.
type Driver[E, A any] struct {
	clock   *clock.Clock
	act     func(now mono.Instant, actions []A)
	inbox   chan item[E]
	urgent  chan item[E] // comes first
	patient chan item[E] // comes last
	waiting atomic.Int64 // how many are in those, or have left them and not been handed over
	ahead   int          // how many of the inbox have come since a patient one could
	done    chan struct{}

	// stepping has one while somebody runs the machine, and guards what follows. It is no mutex,
	// so that whoever waits for it does not stop a virtual clock.
	stepping chan struct{}
	machine  Machine[E, A]
	running  bool // Run has begun, and not ended
	timer    *time.Timer
	alarm    mono.Instant // when the timer rings
	armed    bool         // it has not rung yet
}

// mostAhead is how many events may come before a patient one that waits.
const mostAhead = 8

// item is an event for the machine, or something to do between two events.
type item[E any] struct {
	event E
	take  func() E // the event, if it is known only when it is its turn
	do    func(now mono.Instant)
}

// New returns a driver that is not running yet. Act carries out what the
// machine decides, before anything else happens to it: it must not block, and must
// not keep the slice. Queue bounds the events that wait.
func New[E, A any](c *clock.Clock, m Machine[E, A], queue int, act func(now mono.Instant, actions []A)) *Driver[E, A] {
	return &Driver[E, A]{
		clock: c, machine: m, act: act, done: make(chan struct{}), stepping: make(chan struct{}, 1),
		inbox: make(chan item[E], queue), urgent: make(chan item[E], queue), patient: make(chan item[E], queue),
	}
}

// Run runs the machine until the context ends. It is called once.
//
// A machine that panics takes the process with it: an invariant is broken, and
// leases that are no longer renewed are safe.
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
		d.hand(in)
	}
}

func (d *Driver[E, A]) begin(timer *time.Timer) {
	d.stepping <- struct{}{}
	defer func() { <-d.stepping }()
	d.running, d.timer, d.alarm, d.armed = true, timer, d.clock.Now(), true
}

// end waits for whoever runs the machine, and lets nobody do so afterwards.
func (d *Driver[E, A]) end() {
	d.stepping <- struct{}{}
	defer func() { <-d.stepping }()
	d.running = false
}

// hand hands the machine what comes next.
func (d *Driver[E, A]) hand(in *item[E]) {
	d.stepping <- struct{}{}
	if in == nil {
		d.armed = false // it has rung
	} else {
		defer d.waiting.Add(-1)
	}
	d.run(in)
}

// run runs the machine, and lets others do so then. It is the end of a machine that panics,
// and not only when the process has ended.
func (d *Driver[E, A]) run(in *item[E]) {
	whole := false
	defer func() {
		d.running = d.running && whole
		<-d.stepping
	}()
	if d.running {
		d.arm(d.step(d.clock.Now(), in))
	}
	whole = true
}

// arm sees to it that the timer rings at an instant, or before: then there is another look
// at when it should. To put it off with every event would cost more than that.
func (d *Driver[E, A]) arm(wake mono.Instant) {
	if d.armed && d.alarm <= wake {
		return
	}
	d.alarm, d.armed = wake, true
	d.timer.Reset(max(0, wake.Sub(d.clock.Now())))
}

// Try hands an event to the machine on the caller's goroutine, and has carried out what comes
// of it when it returns: that saves two others the trouble of waking up. It reports false,
// and has done nothing, if there are others before it.
func (d *Driver[E, A]) Try(event E) bool { return d.try(item[E]{event: event}) }

// TryPatient is Try for what [Driver.PostPatient] would be given.
func (d *Driver[E, A]) TryPatient(take func() E) bool { return d.try(item[E]{take: take}) }

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

// next returns what comes next; nil if that is the passing of time.
// It reports false when the context has ended.
func (d *Driver[E, A]) next(ctx context.Context, timer <-chan time.Time) (*item[E], bool) {
	select {
	case in := <-d.urgent:
		return &in, ctx.Err() == nil
	default:
	}
	if d.ahead < mostAhead {
		select {
		case <-timer:
			return nil, true
		case in := <-d.inbox:
			d.ahead++
			return &in, ctx.Err() == nil
		default:
		}
	}
	d.ahead = 0
	select { // the inbox is empty, or others have waited long enough
	case in := <-d.patient:
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
	case in := <-d.patient:
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

// PostPatient is Post for an event that may wait: all others come before it, but that one of
// a few is a patient one as long as there are any. What the event is is asked for when its turn
// has come, so that what has become old meanwhile need not be handed
// to the machine.
func (d *Driver[E, A]) PostPatient(ctx context.Context, take func() E) bool {
	return d.put(ctx, d.patient, item[E]{take: take})
}

// Offer hands an event to the machine if there is room for it.
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

// Do calls f between two events, and waits for it:
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

// Waiting returns how many events wait for the machine. It may be called from any
// goroutine.
func (d *Driver[E, A]) Waiting() int { return len(d.inbox) + len(d.urgent) + len(d.patient) }

// Done is closed when Run has returned.
func (d *Driver[E, A]) Done() <-chan struct{} { return d.done }
