package flease

import (
	"slices"
	"time"
)

// Wall clocks are trusted within epsilon, and errors are detected where possible: a step of the
// local wall clock against the monotonic clock, and a difference from a peer's clock that message
// delays cannot explain.

// A clock is the state of the supervision of the local wall clock.
type clock struct {
	looked Time // clocks at the last check
	steady Wall // wall clock after the last detected step
	ownOff bool // most others find this clock wrong
}

// watchClock detects a step of the wall clock since the last check. A small difference in rate from
// the monotonic clock is tolerated: up to the drift bound, times the interval between checks.
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
		m.reset(now)
	case !m.admission.ready():
		m.recover(now)
		m.dropAll(now)
	default:
		m.dropAll(now)
	}
}

// Slept handles a suspension of the computer, in which the monotonic clock stopped: deadlines from
// before end too late on that clock. A snapshot may also have been made or restored during an
// apparent suspension.
func (m *Machine) Slept(now Time) {
	m.observe(now)
	m.reset(now)
}

// reset drops all state, as if the process had been started now. If the monotonic clock was
// suddenly behind the wall clock, this process may have been restored from a snapshot. Then its
// promises and accepted values after the snapshot are lost, and it must not send different messages
// under the same incarnation. It keeps the bids, and the floors, which are always safe.
func (m *Machine) reset(now Time) {
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
		m.resetCell(now, c)
	}
}

// resetCell resets a cell to the state without any knowledge.
func (m *Machine) resetCell(now Time, c *cell) {
	if c.bid == nil && !c.watched {
		m.acceptor.drop(c)
		return
	}
	c.promised, c.promisee, c.written, c.value, c.deadline, c.fence = m.acceptor.floor, 0, Ballot{}, Value{}, 0, m.acceptor.fence
	m.notifyWatcher(now, c)
}

// compareClocks reports whether a peer's clock is plausible. Its envelope was sent before now, and
// after the envelope that it echoes.
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

// judgeOwn declares the local clock wrong if most others differ from it.
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
