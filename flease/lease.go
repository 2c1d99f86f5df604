package flease

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	machine "github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// A Lease is the exclusive right to a resource, from one acquisition to its end. The
// node renews it until it is released or lost, or the node is closed. A lease that has
// ended does not become valid again; acquire the resource anew. All methods are safe
// for concurrent use.
type Lease struct {
	node   *Node
	entry  *entry
	fence  uint64
	sleeps uint64 // suspends of the computer before the acquisition

	until atomic.Pointer[machine.Time] // nil when the lease has ended
	first machine.Time                 // the first value of until, to save an allocation

	mu     sync.Mutex
	over   ending          // the reason
	ctx    context.Context // cancelled at the end; nil until it is needed
	cancel context.CancelCauseFunc
}

// Resource returns the name of the resource.
func (l *Lease) Resource() string { return l.entry.name }

// Fence returns the lease's fencing token. It is higher than that of any earlier lease
// of the resource, and does not change. Send it with every external effect.
func (l *Lease) Fence() uint64 { return l.fence }

// Valid reports whether this process holds the lease now, without a gap since the
// acquisition. It takes no lock and costs little more than time.Now.
func (l *Lease) Valid() bool {
	until := l.until.Load()
	if until == nil {
		return false
	}
	now, sleeps := l.node.time.read()
	return now.Mono < until.Mono && now.Wall <= until.Wall && sleeps == l.sleeps
}

// Until returns when the lease expires unless it is renewed, on this computer's wall
// clock. It is zero when the lease has ended. Use Valid for decisions, since the wall
// clock may be set.
func (l *Lease) Until() time.Time {
	until := l.until.Load()
	if until == nil {
		return time.Time{}
	}
	return timeOf(until.Wall)
}

// Done returns a channel that is closed when the lease has ended, for any reason. It is
// closed after Valid starts to return false: usually at once, and up to a second later
// if a clock has jumped.
func (l *Lease) Done() <-chan struct{} { return l.lasts().Done() }

// Context returns a context that is cancelled when the lease ends, parent ends, or
// cancel is called, which is required when the context is no longer needed. If the
// lease ended, context.Cause returns the error of Err. Use it to stop long operations,
// such as a request to a store. It is cancelled together with Done, after Valid starts
// to return false; so it replaces neither Valid nor the fence. It takes no goroutine.
func (l *Lease) Context(parent context.Context) (ctx context.Context, cancel context.CancelFunc) {
	ctx, end := context.WithCancelCause(parent)
	lasts := l.lasts()
	stop := context.AfterFunc(lasts, func() { end(context.Cause(lasts)) })
	if lasts.Err() != nil {
		end(context.Cause(lasts)) // AfterFunc would be asynchronous
	}
	return ctx, func() {
		stop()
		end(nil)
	}
}

// lasts returns a context that is cancelled when the lease ends, with the reason as its
// cause.
func (l *Lease) lasts() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx == nil {
		l.ctx, l.cancel = context.WithCancelCause(context.Background())
		if l.over != lasting {
			l.cancel(l.over.err(l.entry.name))
		}
	}
	return l.ctx
}

// Err returns nil until Done is closed, and then the reason: an error of kind
// [leasehold.ErrClosed] if the lease was released or the node was closed, and
// [leasehold.ErrNotOwner] if the lease was lost.
func (l *Lease) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over.err(l.entry.name)
}

// Release releases the lease. It is not valid after the start of the call, so the
// protected work must have stopped before. Release then sends the release to the
// members, and another member can acquire the resource at once.
//
// An error means that no majority of the members has acknowledged the release before
// ctx ended; the resource is free when the lease has expired. Sending continues after ctx
// ends. Release of a lease that has ended succeeds.
func (l *Lease) Release(ctx context.Context) error {
	return l.node.ReleaseAll(ctx, []*Lease{l})
}

// extend sets a later end. The node's lock is held.
func (l *Lease) extend(until machine.Time) {
	if l.until.Load() != nil {
		l.until.Store(&until)
	}
}

// end ends the lease. Only the first reason counts. The node's lock is held.
func (l *Lease) end(why ending) {
	l.until.Store(nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over != lasting {
		return
	}
	l.over = why
	if l.ctx != nil {
		l.cancel(why.err(l.entry.name))
	}
}

// Remaining returns the time until the lease expires unless it is renewed, by both
// clocks; 0 if it has ended. Use it to derive promises with a time limit, and Valid for
// decisions, since a clock may jump.
func (l *Lease) Remaining() time.Duration {
	until := l.until.Load()
	if until == nil {
		return 0
	}
	now, sleeps := l.node.time.read()
	if sleeps != l.sleeps {
		return 0
	}
	return max(0, min(until.Mono.Sub(now.Mono), until.Wall.Sub(now.Wall)))
}
