package flease

import "github.com/leasehold-dev/leasehold/internal/core/mono"

// Two processes that run with one id, twins, are one member with two memories:
// majorities of different twins need not overlap. So one of them must give way.
//
// That another incarnation of a process speaks proves nothing: it may have started
// anew, and what comes from the earlier one may be late, or replayed. Two are alive
// at a time if each has answered something that we said after we had heard of both.
// No clocks are compared for that but our own, and it need not even be steady.
//
// Who takes part stays, and who waits gives way; of two that both do, the one with
// the higher incarnation gives way. So all members that see two mean the same one.
// They tell it on the way that its packets come, since the address that they know
// may be the other one's. And a process that waits also greets the address at which
// the others look for it: whoever answers there is its twin. Nobody gives way before
// it is told to, so that whoever stays knows of it, and can say so.

// A life is an incarnation of another process, as far as we have heard it.
type life struct {
	incarnation uint64
	sent        Wall         // its clock when it sent what came last
	waiting     bool         // it did not take part then
	alive       bool         // it has answered what we said after we had heard of both
	answered    mono.Instant // when it was last answered on the way its packets come
}

// lives are the incarnations of another process that were heard last.
type lives struct {
	heard  [2]life      // the last one first
	mark   Wall         // the latest Sent that we had used when the second of them came up
	pings  int          // how often the member was asked to answer since then
	pinged mono.Instant // when
	shun   uint64       // the one that was found to have to give way; 0 if none
}

// maxPings is how often a member is asked to answer when another incarnation of it
// has spoken. As a rule it is the one before, and dead.
const maxPings = 20

// two reports whether two incarnations were heard, and are not known to be twins.
func (l *lives) two() bool { return l.heard[1].incarnation != 0 }

// note notes who has spoken, and returns it.
func (m *Machine) note(p *peer, e *Envelope) *life {
	l := &p.lives
	switch e.Incarnation {
	case l.heard[0].incarnation:
	case l.heard[1].incarnation:
		l.heard[0], l.heard[1] = l.heard[1], l.heard[0]
	default:
		l.heard[0], l.heard[1] = life{incarnation: e.Incarnation}, l.heard[0]
		l.heard[1].alive = false
		l.mark, l.pings, l.pinged = m.identity.said, 0, 0
	}
	who := &l.heard[0]
	who.sent, who.waiting = e.Sent, e.Waiting
	return who
}

// census hears who has spoken for a peer's id. It reports false if that one is to
// give way to its twin. If it returns an answer, that goes the way that e came.
func (m *Machine) census(now Time, p *peer, e *Envelope) (answer Envelope, reply, welcome bool) {
	l := &p.lives
	if l.shun == e.Incarnation {
		m.notice(Notice{What: EqualIDs, Peer: p.id})
		return m.giveWay(now, e), true, false
	}
	who := m.note(p, e)
	if !l.two() {
		return answer, false, true
	}
	who.alive = who.alive || e.To == m.cfg.Incarnation && e.Echo > l.mark && e.Echo <= m.identity.said
	if who.alive && l.heard[1].alive {
		return m.separate(now, p, e)
	}
	if !l.heard[1].alive && l.pings < maxPings && m.rested(now, l.pinged) {
		l.pings, l.pinged, p.ask = l.pings+1, now.Mono, true
	}
	if who.alive || !m.rested(now, who.answered) {
		return answer, false, true
	}
	who.answered = now.Mono
	return m.answerTo(now, e), true, true
}

// rested reports whether something that is done now and then may be done again.
func (m *Machine) rested(now Time, last mono.Instant) bool {
	return last == 0 || now.Mono.Sub(last) >= m.GreetEvery()/2
}

// separate decides which of two twins stays, when both have proved to be alive.
func (m *Machine) separate(now Time, p *peer, e *Envelope) (answer Envelope, reply, welcome bool) {
	stays, goes := p.lives.heard[0], p.lives.heard[1]
	if stays.yields(&goes) {
		stays, goes = goes, stays
	}
	p.lives = lives{heard: [2]life{stays}, shun: goes.incarnation}
	m.notice(Notice{What: EqualIDs, Peer: p.id})
	if e.Incarnation == goes.incarnation {
		return m.giveWay(now, e), true, false
	}
	return answer, false, true
}

// yields reports whether a process gives way to its twin.
func (l *life) yields(o *life) bool {
	if l.waiting != o.waiting {
		return l.waiting
	}
	return l.incarnation > o.incarnation
}

// answerTo is what we say to the sender of an envelope, and to nobody else.
func (m *Machine) answerTo(now Time, e *Envelope) Envelope {
	m.identity.said = max(m.identity.said, now.Wall)
	return Envelope{
		From: m.cfg.Self, Incarnation: m.cfg.Incarnation, Waiting: !m.admission.ready(),
		To: e.Incarnation, Sent: now.Wall, Echo: e.Sent,
	}
}

func (m *Machine) giveWay(now Time, e *Envelope) Envelope {
	answer := m.answerTo(now, e)
	answer.GiveWay = true
	return answer
}

// meetTwin hears another incarnation of our own id. It may be a former one of ours,
// unless it answers what we have said.
func (m *Machine) meetTwin(now Time, e *Envelope) (answer Envelope, reply bool) {
	if e.Incarnation == m.cfg.Incarnation {
		return answer, false // what we sent to our own address
	}
	if m.identity.twin.incarnation != e.Incarnation {
		m.identity.twin = life{incarnation: e.Incarnation}
	}
	t := &m.identity.twin
	t.sent, t.waiting = e.Sent, e.Waiting
	t.alive = t.alive || e.To == m.cfg.Incarnation && e.Echo <= m.identity.said
	if m.stays() {
		m.notice(Notice{What: EqualIDs, Peer: m.cfg.Self})
		return m.giveWay(now, e), true
	}
	if !m.rested(now, t.answered) {
		return answer, false
	}
	t.answered = now.Mono
	return m.answerTo(now, e), true
}

// stays reports whether we have a twin, which is to give way to us.
func (m *Machine) stays() bool {
	us := life{incarnation: m.cfg.Incarnation, waiting: !m.admission.ready()}
	return m.identity.twin.alive && m.identity.twin.yields(&us)
}

// retire ends our part for good: another process with our id is alive, and stays.
func (m *Machine) retire(now Time) {
	m.admission.stage = retired
	m.notice(Notice{What: GaveWay, Peer: m.cfg.Self})
	for len(m.proposer.bids) > 0 {
		b := m.proposer.bids[0]
		if b.held {
			m.lost(b)
			continue
		}
		m.tell(b, Notice{What: Stopped})
		m.proposer.finish(b)
	}
	for _, p := range m.order {
		p.out, p.greet, p.ask, p.stranger = p.out[:0], false, false, 0
	}
	m.identity.hail = false
}
