package connlimit

import (
	"net"
	"time"
)

// admit gives a connection a place, and takes that of another one for it if need be.
func (l *Listener) admit(inner net.Conn) {
	now := time.Now()
	c := &conn{
		Conn: inner, gate: l, host: hostOf(inner.RemoteAddr()), until: now.Add(l.cfg.Wait),
		gone: make(chan struct{}), rest: rest{since: now},
	}
	l.mu.Lock()
	var over *conn
	switch {
	case l.shut:
		over = c
	case c.host.IsValid() && l.hosts[c.host] >= l.cfg.PerHost:
		over = c
		l.drop(Host)
	case l.open >= l.cfg.Conns && l.waiting.Len() == 0:
		over = c
		l.drop(Full)
	case l.open >= l.cfg.Conns || l.waiting.Len() >= l.cfg.Waiting:
		over = l.oldest()
		l.drop(Crowded)
		l.forget(over)
	}
	if over != c {
		l.open++
		if c.host.IsValid() {
			l.hosts[c.host]++
		}
		c.place, c.counted = l.waiting.PushBack(c), true
		l.running.Go(func() { l.meet(c) })
	}
	first := l.waiting.Len() == 1
	l.mu.Unlock()
	if over != nil {
		_ = over.Conn.Close() // whatever it was about to say
	}
	if first || over != nil {
		l.look()
	}
}

// drop counts a connection that is dropped. The lock is held.
func (l *Listener) drop(why Reason) {
	l.dropped[why]++
	l.cfg.Dropped(why)
}

// evict drops a connection, if there is one, that the function returns under the lock.
func (l *Listener) evict(why Reason, choose func() *conn) {
	l.mu.Lock()
	c := choose()
	if c != nil {
		l.forget(c)
		l.drop(why)
	}
	l.mu.Unlock()
	if c != nil {
		_ = c.Conn.Close() // it has said nothing of use
		l.look()
	}
}

// oldest is the connection that waits for longest, nil if none does. The lock is held.
func (l *Listener) oldest() *conn {
	if e := l.waiting.Front(); e != nil {
		return e.Value.(*conn)
	}
	return nil
}

// forget takes a connection out of all accounts. The lock is held.
func (l *Listener) forget(c *conn) {
	l.introduced(c)
	if !c.shut {
		c.shut = true
		close(c.gone) // whoever reads it need not rest
	}
	if !c.counted {
		return
	}
	c.counted = false
	l.open--
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

// introduced takes a connection from those that wait. The lock is held.
func (l *Listener) introduced(c *conn) {
	if c.place != nil {
		l.waiting.Remove(c.place)
		c.place = nil
	}
	if c.strange != nil {
		l.strangers.Remove(c.strange)
		c.strange = nil
	}
}

func (l *Listener) look() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// sweep closes what is overdue, and tells the log.
func (l *Listener) sweep() {
	timer := time.NewTimer(l.cfg.Wait)
	defer timer.Stop()
	reported := time.Now().Add(-reportEvery)
	for {
		now := time.Now()
		next, some := l.overdue(now)
		if some && now.Sub(reported) >= reportEvery {
			l.report()
			reported, some = now, false
		}
		if report := reported.Add(reportEvery); some && (next.IsZero() || report.Before(next)) {
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

// overdue closes the connections whose time is up. It returns when it is up for the next
// one, a zero time if there is none, and whether the log has not heard of some.
func (l *Listener) overdue(now time.Time) (next time.Time, some bool) {
	var over []*conn
	l.mu.Lock()
	for c := l.oldest(); c != nil; c = l.oldest() {
		if c.until.After(now) {
			next = c.until
			break
		}
		l.forget(c)
		l.drop(Late)
		over = append(over, c)
	}
	some = len(l.dropped) > 0
	l.mu.Unlock()
	for _, c := range over {
		_ = c.Conn.Close() // it was told nothing, and has told nothing
	}
	return next, some
}

// report tells the log who was dropped since it last heard of some.
func (l *Listener) report() {
	l.mu.Lock()
	dropped, open, waiting := l.dropped, l.open, l.waiting.Len()
	l.dropped = make(map[Reason]int)
	l.mu.Unlock()
	if len(dropped) == 0 {
		return
	}
	l.cfg.Logger.Warn("connections were dropped: they did not introduce themselves in time, there were too many, or they asked for too much",
		"address", l.Addr(), "late", dropped[Late], "oldest of too many", dropped[Crowded],
		"no room", dropped[Full], "too many of one host", dropped[Host], "too many of one identity", dropped[Identity],
		"too fast", dropped[Pace], "refused too often", dropped[Refusals], "open", open, "waiting", waiting)
}
