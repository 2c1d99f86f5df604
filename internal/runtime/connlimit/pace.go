package connlimit

import (
	"net/netip"
	"time"
)

// A pace is so many in a second, and some at once. It is what x/time/rate has, as far as we
// need it: the libraries link the gate, and should not link more than they must.
type pace struct {
	every time.Duration // for one
	slack time.Duration // for all that may come at once but the first
	next  time.Time     // when it is the turn of the next one, if all before have taken theirs
}

func newPace(perSecond, atOnce int) *pace {
	every := time.Second / time.Duration(perSecond)
	return &pace{every: every, slack: every * time.Duration(atOnce-1)}
}

// turn takes a turn, and returns how long it is until then.
func (p *pace) turn(now time.Time) time.Duration {
	if earliest := now.Add(-p.slack); p.next.Before(earliest) {
		p.next = earliest
	}
	wait := max(0, p.next.Sub(now))
	p.next = p.next.Add(p.every)
	return wait
}

func (p *pace) giveBack() { p.next = p.next.Add(-p.every) }

// fresh reports whether it is as if no turn had ever been taken.
func (p *pace) fresh(now time.Time) bool { return !p.next.After(now.Add(-p.slack)) }

// maxPaces bounds how many hosts are paced each by itself. Those beyond share a pace.
const maxPaces = 1 << 14

// paces are how fast hosts connect. They are guarded by the gate's lock.
type paces struct {
	perSecond int // of one host; no limit if it is 0
	of        map[netip.Prefix]*pace
	others    *pace // those for whom there is no room
	tidied    time.Time
}

func newPaces(perSecond int) paces {
	p := paces{perSecond: perSecond, of: make(map[netip.Prefix]*pace)}
	if perSecond > 0 {
		p.others = p.fresh()
	}
	return p
}

// fresh lets as many pass in a second, and hardly more at once: whoever shakes hands with all
// of them takes turns with the others.
func (p *paces) fresh() *pace { return newPace(p.perSecond, max(1, p.perSecond/10)) }

func (p *paces) get(host netip.Prefix, now time.Time) *pace {
	if found := p.of[host]; found != nil {
		return found
	}
	if len(p.of) >= maxPaces && now.Sub(p.tidied) >= time.Second {
		p.tidied = now
		for host, one := range p.of {
			if one.fresh(now) {
				delete(p.of, host) // it is as if it had never come
			}
		}
	}
	if len(p.of) >= maxPaces {
		return p.others
	}
	made := p.fresh()
	p.of[host] = made
	return made
}

// turn waits until it is the turn of a connection that has begun to speak, and reports
// whether it is. One that would have to wait for most of its time is dropped at once.
func (l *Listener) turn(c *conn) bool {
	host := prefixOf(c.RemoteAddr())
	if l.paces.perSecond == 0 || !host.IsValid() {
		return true
	}
	now := time.Now()
	l.mu.Lock()
	of := l.paces.get(host, now)
	wait := of.turn(now)
	if wait > l.cfg.Wait/2 {
		of.giveBack()
		l.drop(Pace)
	}
	l.mu.Unlock()
	switch {
	case wait > l.cfg.Wait/2:
		l.look()
		return false
	case wait == 0:
		return true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.done:
		return false
	}
}
