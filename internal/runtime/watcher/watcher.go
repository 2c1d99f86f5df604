// Package watcher checks a condition periodically while an operation waits: whether a server still holds its
// lease, or whether a key still has the owner to which a request was sent.
package watcher

import (
	"errors"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// A Watcher calls a function periodically until it is stopped, or the function returns false. It costs a timer,
// and has no goroutine between the calls.
type Watcher struct {
	check func() (again bool)
	every time.Duration

	mu      sync.Mutex // held during check
	timer   *time.Timer
	stopped bool
}

// Start returns a Watcher whose first call of check is after one interval.
func Start(every time.Duration, check func() (again bool)) *Watcher {
	w := &Watcher{check: check, every: every}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(every, w.fire)
	return w
}

func (w *Watcher) fire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	if w.stopped = !w.check(); !w.stopped {
		w.timer.Reset(w.every)
	}
}

// Stop waits for a running check. No check runs after it has returned.
func (w *Watcher) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.timer.Stop()
}

// ownerCheckInterval is the interval of checks that a key still has the same owner. It is also the minimum time
// for a response, sent before the key moved, to arrive.
const ownerCheckInterval = time.Second

// ErrMoved is the cause of the end of an attempt whose key has moved.
var ErrMoved = errors.New("the key moved to another server while this one did not respond")

// A Table maps keys to addresses. It is safe for concurrent use, and Find does not block.
type Table interface {
	Find(leasehold.Key) (addr string, ok bool)
}

// Owner starts a Watcher of an attempt at the owner of a key. It calls end with [ErrMoved] when two consecutive
// checks find another owner, which is one to two seconds after the table has changed: a paused or partitioned
// server keeps its connections and does not respond, and the attempt would wait until its deadline. While the
// key has no owner, the attempt continues.
func Owner(t Table, key leasehold.Key, addr string, end func(cause error)) *Watcher {
	movedBefore := false
	return Start(ownerCheckInterval, func() (again bool) {
		now, owned := t.Find(key)
		moved := owned && now != addr
		if moved && movedBefore {
			end(ErrMoved)
			return false
		}
		movedBefore = moved
		return true
	})
}
