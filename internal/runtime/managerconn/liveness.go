package managerconn

import (
	"context"
	"sync"
	"time"
)

// liveness detects dead connections by missing replies.
//
// A connection may die without an error: a firewall drops its state, or a host loses power. Then all
// messages are lost, while a new connection would work. gRPC's keepalive detects that only after more than
// a lease, and cannot be configured to be faster. On Linux, the system closes a connection to a host that does not
// acknowledge data (see limitUnacked). In all other cases, such as a proxy in between, the fourth message without a
// reply aborts the stream, and is sent over a new connection.
//
// The machines wait longer after each message without a reply, in proportion to the lease: they send the fourth
// before half of it has passed. Earlier aborts would do harm. The manager or this process may be slow, and reconnects of
// all clients make both slower. So a silence of less than minSilence never aborts, and each abort doubles the limit of
// the next one, until a message is received.
//
// It is safe for concurrent use.
type liveness struct {
	mu         sync.Mutex
	abort      context.CancelFunc // of the stream; nil if none is open
	aborted    bool
	unanswered int       // messages since the last reply
	since      time.Time // of the first of them
	limit      int       // of unanswered
}

const (
	minUnanswered = 4
	maxUnanswered = 4 * minUnanswered
	minSilence    = 3 * time.Second
)

// start is called for a new stream, before its first message is sent.
func (l *liveness) start(abort context.CancelFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.abort, l.aborted = abort, false
	l.unanswered, l.since = 1, time.Now()
	l.limit = max(l.limit, minUnanswered)
}

// sent counts a message, and aborts the stream at the limit. That also interrupts a blocked send.
func (l *liveness) sent() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.abort == nil || l.aborted {
		return
	}
	if l.unanswered == 0 {
		l.since = time.Now()
	}
	l.unanswered++
	if l.unanswered < l.limit || time.Since(l.since) < minSilence {
		return
	}
	l.aborted = true
	l.limit = min(2*l.limit, maxUnanswered)
	l.abort()
}

// received is called for each message of the manager.
func (l *liveness) received() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unanswered, l.limit = 0, minUnanswered
}

// wasAborted reports whether sent has aborted the stream.
func (l *liveness) wasAborted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.aborted
}

// stop is called at the end of the stream, and reports whether sent has aborted it.
func (l *liveness) stop() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	aborted := l.aborted
	l.abort, l.aborted = nil, false
	return aborted
}
