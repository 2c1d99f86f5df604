package flease

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	machine "github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// A Lease is one tenure of a resource. It is renewed by itself until it is
// released, lost, or its node is closed. When it is over it never becomes valid
// again; the resource must be acquired anew.
type Lease struct {
	node   *Node
	entry  *entry
	fence  uint64
	sleeps uint64 // how often the computer had slept when it was acquired

	until atomic.Pointer[machine.Time] // nil when it is over
	first machine.Time                 // where until points to at first

	mu     sync.Mutex
	over   ending          // why
	ctx    context.Context // ends with it; nil until somebody asks for it
	cancel context.CancelCauseFunc
}

// Resource is what it is a lease of.
func (l *Lease) Resource() string { return l.entry.name }

// Fence is higher than that of any lease of the resource before, and the same for
// as long as this one lasts. Send it along with whatever has an effect elsewhere.
func (l *Lease) Fence() uint64 { return l.fence }

// Valid reports whether this process has the lease now, and has had it without a
// gap since it was acquired. It takes no lock and costs little more than time.Now.
func (l *Lease) Valid() bool {
	until := l.until.Load()
	if until == nil {
		return false
	}
	now, sleeps := l.node.time.read()
	return now.Mono < until.Mono && now.Wall <= until.Wall && sleeps == l.sleeps
}

// Until returns when the lease ends, on this computer's wall clock, if it is not
// renewed before. It is zero when the lease is over. Valid decides, not this: the
// wall clock may be set.
func (l *Lease) Until() time.Time {
	until := l.until.Load()
	if until == nil {
		return time.Time{}
	}
	return timeOf(until.Wall)
}

// Done returns a channel that is closed when the lease is over, for whatever
// reason. It is closed after Valid has begun to return false: usually at once, and
// up to a second later if a clock has jumped.
func (l *Lease) Done() <-chan struct{} { return l.lasts().Done() }

// Context returns a context that ends when the lease is over, or parent ends, or
// cancel is called, as it must be when the context is no longer needed. If it was
// the lease, context.Cause is what Err returns. It serves to stop what takes long,
// such as a request to a store. It ends when Done is closed, which is after Valid
// has begun to return false; so it replaces neither Valid nor the fence. No
// goroutine waits for it.
func (l *Lease) Context(parent context.Context) (ctx context.Context, cancel context.CancelFunc) {
	ctx, end := context.WithCancelCause(parent)
	lasts := l.lasts()
	stop := context.AfterFunc(lasts, func() { end(context.Cause(lasts)) })
	if lasts.Err() != nil {
		end(context.Cause(lasts)) // at once
	}
	return ctx, func() {
		stop()
		end(nil)
	}
}

// lasts is a context that ends when the lease is over, with the reason for its
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

// Err returns nil until Done is closed, and then why the lease is over: its kind
// is [leasehold.ErrClosed] if it was released or the node was closed, and
// [leasehold.ErrNotOwner] if it was lost.
func (l *Lease) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over.err(l.entry.name)
}

// Release gives the lease up. It is not valid from the beginning of the call on,
// so whatever relies on it must have stopped before. Then the members are told,
// and another can have the resource at once.
//
// An error means that the members may not have been told, within ctx or at all;
// the resource is then free when the lease has run out. The telling goes on when
// ctx ends. To release what is over already is no error.
func (l *Lease) Release(ctx context.Context) error {
	return l.node.ReleaseAll(ctx, []*Lease{l})
}

// extend is called with the node's lock held.
func (l *Lease) extend(until machine.Time) {
	if l.until.Load() != nil {
		l.until.Store(&until)
	}
}

// end is called with the node's lock held. Only the first reason counts.
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

// Remaining returns for how long the lease is valid from now on if it is not
// renewed, as far as both clocks can tell; 0 if it is over. It is for those who
// hand on a promise with a time limit. Valid decides, since a clock may jump.
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
