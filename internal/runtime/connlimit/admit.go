package connlimit

import (
	"net"
	"time"
)

// admit counts a new connection. At a limit it closes either that connection or the oldest pending one.
func (l *Listener) admit(inner net.Conn) {
	now := time.Now()
	c := &conn{
		Conn: inner, listener: l, host: countedHost(inner.RemoteAddr()), deadline: now.Add(l.cfg.HandshakeTimeout),
		removed: make(chan struct{}), pause: readPause{epoch: now},
	}
	l.mu.Lock()
	var victim *conn
	switch {
	case l.closed:
		victim = c
	case c.host.IsValid() && l.hosts[c.host] >= l.cfg.PerHost:
		victim = c
		l.drop(Host)
	case l.conns >= l.cfg.Conns && l.pending.Len() == 0:
		victim = c
		l.drop(Full)
	case l.conns >= l.cfg.Conns || l.pending.Len() >= l.cfg.MaxPending:
		victim = l.oldest()
		l.drop(Crowded)
		l.remove(victim)
	}
	if victim != c {
		l.conns++
		if c.host.IsValid() {
			l.hosts[c.host]++
		}
		c.pending, c.counted = l.pending.PushBack(c), true
		l.running.Go(func() { l.awaitFirstBytes(c) })
	}
	first := l.pending.Len() == 1
	l.mu.Unlock()
	if victim != nil {
		_ = victim.Conn.Close() // it is pending: no data is lost
	}
	if first || victim != nil {
		l.wakeSweeper()
	}
}

// drop counts a dropped connection. l.mu is held.
func (l *Listener) drop(why Reason) {
	l.dropped[why]++
	l.cfg.Dropped(why)
}

// evict drops the connection that choose returns, nil for none. choose runs with l.mu held.
func (l *Listener) evict(why Reason, choose func() *conn) {
	l.mu.Lock()
	c := choose()
	if c != nil {
		l.remove(c)
		l.drop(why)
	}
	l.mu.Unlock()
	if c != nil {
		_ = c.Conn.Close() // it is pending: no data is lost
		l.wakeSweeper()
	}
}

// oldest returns the oldest pending connection, nil if there is none. l.mu is held.
func (l *Listener) oldest() *conn {
	if e := l.pending.Front(); e != nil {
		return e.Value.(*conn)
	}
	return nil
}

// remove removes a connection from all counts and lists. l.mu is held.
func (l *Listener) remove(c *conn) {
	l.markEstablished(c)
	if !c.closed {
		c.closed = true
		close(c.removed)
	}
	if !c.counted {
		return
	}
	c.counted = false
	l.conns--
	if c.identity != "" {
		if l.identities[c.identity]--; l.identities[c.identity] == 0 {
			delete(l.identities, c.identity)
		}
	}
	if !c.host.IsValid() {
		return
	}
	if l.hosts[c.host]--; l.hosts[c.host] == 0 {
		delete(l.hosts, c.host)
	}
}

// markEstablished removes a connection from the pending ones. l.mu is held.
func (l *Listener) markEstablished(c *conn) {
	if c.pending != nil {
		l.pending.Remove(c.pending)
		c.pending = nil
	}
	if c.anonymous != nil {
		l.anonymous.Remove(c.anonymous)
		c.anonymous = nil
	}
}

// wakeSweeper makes the sweeper recompute its timer.
func (l *Listener) wakeSweeper() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// sweep closes connections at their deadlines and logs dropped connections.
func (l *Listener) sweep() {
	timer := time.NewTimer(l.cfg.HandshakeTimeout)
	defer timer.Stop()
	reported := time.Now().Add(-reportInterval)
	for {
		now := time.Now()
		next, unreported := l.closeExpired(now)
		if unreported && now.Sub(reported) >= reportInterval {
			l.report()
			reported, unreported = now, false
		}
		if report := reported.Add(reportInterval); unreported && (next.IsZero() || report.Before(next)) {
			next = report
		}
		timer.Stop()
		if !next.IsZero() {
			timer.Reset(max(next.Sub(now), 0))
		}
		select {
		case <-l.done:
			l.report()
			return
		case <-l.wake:
		case <-timer.C:
		}
	}
}

// closeExpired closes the pending connections whose deadline has passed. It returns the next
// deadline, the zero time if there is none, and whether there are dropped connections to report.
func (l *Listener) closeExpired(now time.Time) (next time.Time, unreported bool) {
	var expired []*conn
	l.mu.Lock()
	for c := l.oldest(); c != nil; c = l.oldest() {
		if c.deadline.After(now) {
			next = c.deadline
			break
		}
		l.remove(c)
		l.drop(Late)
		expired = append(expired, c)
	}
	unreported = len(l.dropped) > 0
	l.mu.Unlock()
	for _, c := range expired {
		_ = c.Conn.Close() // it is pending: no data is lost
	}
	return next, unreported
}

// report logs the connections that were dropped since the last report.
func (l *Listener) report() {
	l.mu.Lock()
	dropped, open, pending := l.dropped, l.conns, l.pending.Len()
	l.dropped = make(map[Reason]int)
	l.mu.Unlock()
	if len(dropped) == 0 {
		return
	}
	l.cfg.Logger.Warn("connections dropped: handshake timeout, connection limit or rate limit",
		"address", l.Addr(), "late", dropped[Late], "crowded", dropped[Crowded], "full", dropped[Full],
		"host", dropped[Host], "identity", dropped[Identity], "pace", dropped[Pace], "refusals", dropped[Refusals],
		"open", open, "pending", pending)
}
