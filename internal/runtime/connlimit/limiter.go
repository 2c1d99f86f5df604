package connlimit

import "time"

// A limiter is a rate limiter with a burst, like that of golang.org/x/time/rate, which the libraries must
// not link. It is guarded by the listener's mutex.
type limiter struct {
	interval time.Duration // between events
	burst    time.Duration // interval times the burst without the first event
	next     time.Time     // of the next event at the full rate
}

func newLimiter(perSecond, burst int) *limiter {
	interval := time.Second / time.Duration(perSecond)
	return &limiter{interval: interval, burst: interval * time.Duration(burst-1)}
}

// reserve counts an event and returns its delay.
func (l *limiter) reserve(now time.Time) time.Duration {
	if earliest := now.Add(-l.burst); l.next.Before(earliest) {
		l.next = earliest
	}
	delay := max(0, l.next.Sub(now))
	l.next = l.next.Add(l.interval)
	return delay
}

// cancel undoes a reserve.
func (l *limiter) cancel() { l.next = l.next.Add(-l.interval) }

// full reports whether the whole burst is available, as in a new limiter.
func (l *limiter) full(now time.Time) bool { return !l.next.After(now.Add(-l.burst)) }
