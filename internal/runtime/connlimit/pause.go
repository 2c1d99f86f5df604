package connlimit

import (
	"context"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/peer"
)

// callsPerSecond is the rate and burst of calls on one connection below which [Slow] has no effect. A genuine
// client makes one long call.
const callsPerSecond = 5

// A rejected call costs a server nearly as much as an accepted one. Each connection has a rate of rejected
// calls and a burst of twice as many; beyond it, reading pauses. A connection that would have to pause
// for more than maxPause is closed after closeDelay, so that the last reply can be sent.
const (
	refusalsPerSecond = 10
	maxPause          = 10 * time.Second
	closeDelay        = time.Second
)

// Slow pauses reading from the connection of a call for a duration, if the connection makes more than a few calls per
// second. Replies are still sent, as far as the peer's flow control window allows. Slow does not block, and
// has no effect on connections without [Callers].
func Slow(ctx context.Context, pause time.Duration) {
	if c := connOfCall(ctx); c != nil && c.listener.exceedsCallRate(c, time.Now()) {
		c.pause.extend(time.Now().Add(pause))
	}
}

// exceedsCallRate counts a call. Calls above the rate are not counted: the limit of their identity covers them.
func (l *Listener) exceedsCallRate(c *conn, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.calls == nil {
		c.calls = rate.NewLimiter(callsPerSecond, callsPerSecond)
	}
	return !c.calls.AllowN(now, 1)
}

// Refused counts a rejected call, and pauses reading from its connection or closes it if there are too
// many. It does not block.
func Refused(ctx context.Context) {
	if c := connOfCall(ctx); c != nil {
		c.listener.countRefusal(c, time.Now())
	}
}

func (l *Listener) countRefusal(c *conn, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.refused == nil {
		c.refused = rate.NewLimiter(refusalsPerSecond, 2*refusalsPerSecond)
	}
	delay := c.refused.ReserveN(now, 1).DelayFrom(now)
	if delay > maxPause {
		if c.pause.close(now.Add(closeDelay)) {
			l.drop(Refusals)
			l.wakeSweeper()
		}
		return
	}
	c.pause.extend(now.Add(delay))
}

// connOfCall returns the connection of a call, nil without [Callers].
func connOfCall(ctx context.Context) *conn {
	if p, ok := peer.FromContext(ctx); ok {
		if from, ok := p.Addr.(address); ok {
			return from.conn
		}
	}
	return nil
}

// A readPause is the time during which a connection is not read.
type readPause struct {
	epoch time.Time
	end   atomic.Int64 // after epoch, in nanoseconds; 0: no pause
	final atomic.Bool  // the end of the pause ends the connection
}

func (p *readPause) extend(end time.Time) {
	at := int64(end.Sub(p.epoch))
	for {
		before := p.end.Load()
		if before >= at || p.end.CompareAndSwap(before, at) {
			return
		}
	}
}

// close makes the pause final, and reports whether this is the first such call.
func (p *readPause) close(end time.Time) bool {
	p.extend(end)
	return !p.final.Swap(true)
}

func (p *readPause) pending() bool { return p.end.Load() != 0 }

// wait blocks until the end of the pause or until the connection is removed. It returns io.EOF after a final
// pause.
func (p *readPause) wait(removed <-chan struct{}) error {
	for {
		at := p.end.Load()
		delay := time.Until(p.epoch.Add(time.Duration(at)))
		if delay <= 0 {
			if p.final.Load() {
				return io.EOF
			}
			if p.end.CompareAndSwap(at, 0) {
				return nil
			}
			continue
		}
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
		case <-removed: // the caller's read fails
			timer.Stop()
			return nil
		}
	}
}
