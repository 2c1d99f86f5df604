package flease

import "time"

// Wall clocks are trusted within epsilon, and watched as far as that is
// possible: a jump of our own, against our monotonic clock; and a difference from
// a peer's that no delay of messages can explain.

// watchClock finds out that our wall clock was set since we last looked. That it
// goes a little faster or slower than the monotonic one is not noticed here: by
// as much as the drift bound allows the two come apart while we do not look.
func (m *Machine) watchClock(now Time) {
	passed := now.Mono.Sub(m.looked.Mono)
	by := now.Wall.Sub(m.looked.Wall) - passed
	m.looked = now
	if by.Abs() <= m.cfg.Epsilon+m.cfg.Drift.Stretch(passed)-passed {
		return
	}
	m.steady = now.Wall
	m.notice(Notice{What: ClockStep, By: by})
	for _, p := range m.order {
		p.echo, p.since, p.off = 0, now.Wall, false
	}
	m.ownOff = false
	if !m.ready {
		m.recover(now)
	}
	m.dropAll(now)
}

// Slept hears that the computer was suspended, and its monotonic clock with it:
// what counts from before ends too late on that clock. What we keep for others
// only lasts longer by that.
func (m *Machine) Slept(now Time) {
	m.observe(now)
	m.dropAll(now)
}

// compareClocks reports whether a peer's clock may be as far from ours as it may.
// What the peer sent was sent before now; and after we had sent what it echoes.
func (m *Machine) compareClocks(now Time, p *peer, e *Envelope) bool {
	p.echo = e.Sent
	echoes := e.Echo > m.steady && e.Echo <= now.Wall
	ahead, behind := e.Sent.Sub(now.Wall), time.Duration(0)
	if echoes {
		behind = e.Echo.Sub(e.Sent)
	}
	switch off := max(ahead, behind) > m.cfg.Epsilon; {
	case off && !p.off:
		p.off = true
		by := ahead
		if behind > ahead {
			by = -behind
		}
		m.notice(Notice{What: PeerClock, Peer: p.id, By: by})
		m.judgeOwn(now)
	case !off && p.off && echoes:
		p.off = false
		m.notice(Notice{What: PeerClockOK, Peer: p.id})
		m.judgeOwn(now)
	}
	return !p.off
}

// judgeOwn takes our own clock for the wrong one if most others differ from it.
func (m *Machine) judgeOwn(now Time) {
	differ := 0
	for _, p := range m.order {
		if p.off {
			differ++
		}
	}
	wrong := 2*differ > len(m.order)
	if wrong && !m.ownOff {
		m.notice(Notice{What: OwnClock})
		m.dropAll(now)
	}
	m.ownOff = wrong
}
