package connlimit

import (
	"context"
	"io"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/peer"
)

// callsPerSecond is how many calls a connection may make, or as many at once, and never rests
// because others of its identity make too many: a peer of ours makes one, and stays.
const callsPerSecond = 5

// Calls that are refused cost a server nearly as much as those that are not. A connection
// may have some of them a second, or twice as many at once, and rests for those beyond. One
// that would have to rest for too long is closed, once it can have heard why.
const (
	refusalsPerSecond = 10
	longestRest       = 10 * time.Second
	lastWord          = time.Second
)

// Slow has the connection on which a call has come rest, if it makes many: nothing more is
// read of it for a while, so that whoever is behind it takes turns with the others. It does
// not wait itself, and answers go out meanwhile, as far as the peer has said that it has room
// for them. Other connections than those of [Callers] do not rest.
func Slow(ctx context.Context, pause time.Duration) {
	if c := caller(ctx); c != nil && c.gate.hasty(c, time.Now()) {
		c.rest.until(time.Now().Add(pause))
	}
}

// hasty counts a call of a connection, and reports whether it makes too many by itself.
func (l *Listener) hasty(c *conn, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.calls == nil {
		c.calls = newPace(callsPerSecond, callsPerSecond)
	}
	if c.calls.turn(now) == 0 {
		return false
	}
	c.calls.giveBack() // the limits of its identity count the others
	return true
}

// Refused says that a call was refused, for which its connection may have to rest. It does
// not wait itself.
func Refused(ctx context.Context) {
	if c := caller(ctx); c != nil {
		c.gate.refuse(c, time.Now())
	}
}

func (l *Listener) refuse(c *conn, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.refused == nil {
		c.refused = newPace(refusalsPerSecond, 2*refusalsPerSecond)
	}
	pause := c.refused.turn(now)
	if pause > longestRest {
		if c.rest.end(now.Add(lastWord)) {
			l.drop(Refusals)
			l.look()
		}
		return
	}
	c.rest.until(now.Add(pause))
}

// caller returns the connection on which a call has come, nil if it is none of [Callers].
func caller(ctx context.Context) *conn {
	if p, ok := peer.FromContext(ctx); ok {
		if from, ok := p.Addr.(address); ok {
			return from.conn
		}
	}
	return nil
}

// A rest is for how long nothing is read of a connection.
type rest struct {
	since time.Time    // what times are counted from
	over  atomic.Int64 // when it ends, since then; 0 if there is none
	final atomic.Bool  // nothing is read after it
}

func (r *rest) until(when time.Time) {
	at := int64(when.Sub(r.since))
	for {
		before := r.over.Load()
		if before >= at || r.over.CompareAndSwap(before, at) {
			return
		}
	}
}

// end makes a rest the last one, unless one is, and reports whether it was none yet.
func (r *rest) end(when time.Time) bool {
	r.until(when)
	return !r.final.Swap(true)
}

func (r *rest) due() bool { return r.over.Load() != 0 }

// take rests, until it is over or the connection is gone. It fails if nothing is to be read
// any more.
func (r *rest) take(gone <-chan struct{}) error {
	for {
		at := r.over.Load()
		wait := time.Until(r.since.Add(time.Duration(at)))
		if wait <= 0 {
			if r.final.Load() {
				return io.EOF
			}
			if r.over.CompareAndSwap(at, 0) {
				return nil
			}
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-gone: // reading says so
			timer.Stop()
			return nil
		}
	}
}
