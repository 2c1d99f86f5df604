package connlimit

import (
	"net/netip"
	"time"

	"golang.org/x/time/rate"
)

// maxHostLimiters is the maximum number of hosts with a rate limiter of their own. The others share one.
const maxHostLimiters = 1 << 14

// hostLimiters limits the rate of handshakes per host. It is guarded by the listener's mutex.
type hostLimiters struct {
	perSecond int // per host; 0: no limit
	byHost    map[netip.Prefix]*rate.Limiter
	shared    *rate.Limiter // of hosts beyond maxHostLimiters
	pruned    time.Time     // when idle hosts were last removed
}

func newHostLimiters(perSecond int) hostLimiters {
	h := hostLimiters{perSecond: perSecond, byHost: make(map[netip.Prefix]*rate.Limiter)}
	h.shared = h.newLimiter()
	return h
}

// newLimiter returns a limiter with a small burst, so that the handshakes of one host interleave with those of
// others.
func (h *hostLimiters) newLimiter() *rate.Limiter {
	return rate.NewLimiter(rate.Limit(h.perSecond), max(1, h.perSecond/10))
}

func (h *hostLimiters) get(host netip.Prefix, now time.Time) *rate.Limiter {
	if found := h.byHost[host]; found != nil {
		return found
	}
	if len(h.byHost) >= maxHostLimiters && now.Sub(h.pruned) >= time.Second {
		h.pruned = now
		for host, limiter := range h.byHost {
			if limiter.TokensAt(now) >= float64(limiter.Burst()) {
				delete(h.byHost, host) // a new limiter has the same state
			}
		}
	}
	if len(h.byHost) >= maxHostLimiters {
		return h.shared
	}
	limiter := h.newLimiter()
	h.byHost[host] = limiter
	return limiter
}

// awaitHandshake blocks until the handshake rate of the connection's host admits it. It reports false at once if
// that takes more than half of the handshake timeout, and when the listener is closed.
func (l *Listener) awaitHandshake(c *conn) bool {
	host := prefixOf(c.RemoteAddr())
	if l.handshakes.perSecond == 0 || !host.IsValid() {
		return true
	}
	now := time.Now()
	l.mu.Lock()
	reservation := l.handshakes.get(host, now).ReserveN(now, 1)
	delay := reservation.DelayFrom(now)
	tooLong := delay > l.cfg.HandshakeTimeout/2
	if tooLong {
		reservation.CancelAt(now)
		l.drop(Pace)
	}
	l.mu.Unlock()
	switch {
	case tooLong:
		l.wakeSweeper()
		return false
	case delay == 0:
		return true
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.done:
		return false
	}
}
