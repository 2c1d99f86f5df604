package flease

import (
	"slices"
	"time"
)

// Wall clocks are trusted within epsilon, and watched as far as that is
// possible: a jump of our own, against our monotonic clock; and a difference from
// a peer's that no delay of messages can explain.

// A clock is what was last seen of our own wall clock.
type clock struct {
	looked Time // when we last looked at our clocks
	steady Wall // the wall clock when it was last seen to have been set
	ownOff bool // most others find our clock wrong
}

// watchClock finds out that our wall clock was set since we last looked. That it
// goes a little faster or slower than the monotonic one is not noticed here: by
// as much as the drift bound allows the two come apart while we do not look.
func (m *Machine) watchClock(now Time) {
	passed := now.Mono.Sub(m.clock.looked.Mono)
	by := now.Wall.Sub(m.clock.looked.Wall) - passed
	m.clock.looked = now
	if by.Abs() <= m.cfg.Epsilon+m.cfg.Drift.Stretch(passed)-passed {
		return
	}
	m.clock.steady = now.Wall
	m.notice(Notice{What: ClockStep, By: by})
	for _, p := range m.order {
		p.echo, p.since, p.off = 0, now.Wall, false
	}
	m.clock.ownOff = false
	switch {
	case by > 0:
		m.forget(now)
	case !m.admission.ready():
		m.recover(now)
		m.dropAll(now)
	default:
		m.dropAll(now)
	}
}

// Slept hears that the computer was suspended, and its monotonic clock with it:
// what counts from before ends too late on that clock. And what looks like a
// suspension may have been one in the course of which a copy of us was made.
func (m *Machine) Slept(now Time) {
	m.observe(now)
	m.forget(now)
}

// forget forgets everything, as if the process were started now. A monotonic clock
// that was behind the wall clock all at once may mean that we are a copy of the
// past, brought back from a snapshot: what we have promised and accepted since it
// was made, we do not know, and what was sent then must not be sent in the same
// name again. What we keep is what we want; and floors, which never do harm.
func (m *Machine) forget(now Time) {
	m.cfg.Incarnation = m.cfg.Fresh(m.cfg.Incarnation)
	if m.admission.ready() {
		m.admission.stage = silent
	}
	m.recover(now)
	for _, p := range m.order {
		p.out, p.greet, p.stranger = p.out[:0], false, 0
	}
	for _, b := range slices.Clone(m.proposer.bids) {
		switch {
		case b.held:
			m.lost(b)
		case b.wish == wishNone:
			m.exhausted(b, Unreachable)
		default:
			b.phase, b.losses, b.insist = waiting, 0, false
			m.at(b, m.admission.joins(now))
		}
	}
	for c := m.acceptor.cells.oldest; c != nil; c = c.newer {
		m.acceptor.floor, m.acceptor.fence = later(m.acceptor.floor, c.promised), max(m.acceptor.fence, c.fence)
	}
	var next *cell
	for c := m.acceptor.cells.oldest; c != nil; c = next {
		next = c.newer
		m.blank(now, c)
	}
}

// blank makes a cell one of which nothing is known.
func (m *Machine) blank(now Time, c *cell) {
	if c.bid == nil && !c.watched {
		m.acceptor.drop(c)
		return
	}
	c.promised, c.promisee, c.written, c.value, c.deadline, c.fence = m.acceptor.floor, 0, Ballot{}, Value{}, 0, m.acceptor.fence
	m.inform(now, c)
}

// compareClocks reports whether a peer's clock may be as far from ours as it may.
// What the peer sent was sent before now; and after we had sent what it echoes.
func (m *Machine) compareClocks(now Time, p *peer, e *Envelope) bool {
	p.echo = e.Sent
	echoes := e.Echo > m.clock.steady && e.Echo <= now.Wall
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
	if wrong && !m.clock.ownOff {
		m.notice(Notice{What: OwnClock})
		m.dropAll(now)
	}
	m.clock.ownOff = wrong
}
