package flease

import "github.com/leasehold-dev/leasehold/internal/core/mono"

// Twins are two processes with the same id: one member with two memories. Majorities with different
// twins need not intersect, so one of them must give way.
//
// A message of another incarnation proves nothing: the process may have been restarted, and
// messages of the earlier one may be late or replayed. Two are alive at the same time if each has
// echoed an envelope that we sent after we had received from both. This compares only our own
// clock, which need not even be steady.
//
// A participating process stays, and a waiting one gives way; if both are in the same state, the
// one with the higher incarnation gives way. So all members that see both select the same one. They
// send GiveWay along the return path of its packets, since the address that they have may be the
// other one's. A waiting process also greets the address at which the others look for it: a process
// that replies there is its twin. A process gives way only on request, so that the one that stays
// knows of it and can report it.

// A life is the received state of one incarnation of another process.
type life struct {
	incarnation uint64
	sent        Wall         // its clock in its last envelope
	waiting     bool         // it did not participate then
	alive       bool         // it has echoed an envelope that we sent after both were received
	answered    mono.Instant // last reply along the return path of its packets
}

// lives are the last two incarnations received from another process.
type lives struct {
	recent [2]life      // newest first
	mark   Wall         // latest Sent that we had used when the second one appeared
	pings  int          // queries sent to the member since then
	pinged mono.Instant // time of the last one
	shun   uint64       // the incarnation that must give way; 0 if none
}

// maxPings limits the queries to a member when another incarnation of it has appeared. Usually that
// is the previous one, and dead.
const maxPings = 20

// two reports whether two incarnations were received, and are not known to be twins.
func (l *lives) two() bool { return l.recent[1].incarnation != 0 }

// note records the sender of an envelope, and returns it.
func (m *Machine) note(p *peer, e *Envelope) *life {
	l := &p.lives
	switch e.Incarnation {
	case l.recent[0].incarnation:
	case l.recent[1].incarnation:
		l.recent[0], l.recent[1] = l.recent[1], l.recent[0]
	default:
		l.recent[0], l.recent[1] = life{incarnation: e.Incarnation}, l.recent[0]
		l.recent[1].alive = false
		l.mark, l.pings, l.pinged = m.identity.lastSent, 0, 0
	}
	who := &l.recent[0]
	who.sent, who.waiting = e.Sent, e.Waiting
	return who
}

// checkTwins checks the incarnation of a peer's envelope. welcome is false if this incarnation must
// give way to its twin. If reply is true, answer is sent along the return path of e.
func (m *Machine) checkTwins(now Time, p *peer, e *Envelope) (answer Envelope, reply, welcome bool) {
	l := &p.lives
	if l.shun == e.Incarnation {
		m.notice(Notice{What: EqualIDs, Peer: p.id})
		return m.giveWay(now, e), true, false
	}
	who := m.note(p, e)
	if !l.two() {
		return answer, false, true
	}
	who.alive = who.alive || e.To == m.cfg.Incarnation && e.Echo > l.mark && e.Echo <= m.identity.lastSent
	if who.alive && l.recent[1].alive {
		return m.separate(now, p, e)
	}
	if !l.recent[1].alive && l.pings < maxPings && m.due(now, l.pinged) {
		l.pings, l.pinged, p.query = l.pings+1, now.Mono, true
	}
	if who.alive || !m.due(now, who.answered) {
		return answer, false, true
	}
	who.answered = now.Mono
	return m.answerTo(now, e), true, true
}

// due reports whether a rate-limited action is due again.
func (m *Machine) due(now Time, last mono.Instant) bool {
	return last == 0 || now.Mono.Sub(last) >= m.GreetEvery()/2
}

// separate decides which of two twins stays, when both are proved to be alive.
func (m *Machine) separate(now Time, p *peer, e *Envelope) (answer Envelope, reply, welcome bool) {
	stays, goes := p.lives.recent[0], p.lives.recent[1]
	if stays.yields(&goes) {
		stays, goes = goes, stays
	}
	p.lives = lives{recent: [2]life{stays}, shun: goes.incarnation}
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

// answerTo returns a reply to the sender of an envelope only.
func (m *Machine) answerTo(now Time, e *Envelope) Envelope {
	m.identity.lastSent = max(m.identity.lastSent, now.Wall)
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

// handleTwin handles an envelope of another incarnation of our own id. It may be from an earlier
// process, unless it echoes our envelope.
func (m *Machine) handleTwin(now Time, e *Envelope) (answer Envelope, reply bool) {
	if e.Incarnation == m.cfg.Incarnation {
		return answer, false // our own greeting
	}
	if m.identity.twin.incarnation != e.Incarnation {
		m.identity.twin = life{incarnation: e.Incarnation}
	}
	t := &m.identity.twin
	t.sent, t.waiting = e.Sent, e.Waiting
	t.alive = t.alive || e.To == m.cfg.Incarnation && e.Echo <= m.identity.lastSent
	if m.stays() {
		m.notice(Notice{What: EqualIDs, Peer: m.cfg.Self})
		return m.giveWay(now, e), true
	}
	if !m.due(now, t.answered) {
		return answer, false
	}
	t.answered = now.Mono
	return m.answerTo(now, e), true
}

// stays reports whether we have a twin that must give way to us.
func (m *Machine) stays() bool {
	us := life{incarnation: m.cfg.Incarnation, waiting: !m.admission.ready()}
	return m.identity.twin.alive && m.identity.twin.yields(&us)
}

// retire ends participation for good: a twin stays.
func (m *Machine) retire(now Time) {
	m.admission.stage = retired
	m.notice(Notice{What: GaveWay, Peer: m.cfg.Self})
	for len(m.proposer.bids) > 0 {
		b := m.proposer.bids[0]
		if b.held {
			m.lost(b)
			continue
		}
		m.noticeBid(b, Notice{What: Stopped})
		m.proposer.finish(b)
	}
	for _, p := range m.order {
		p.out, p.greet, p.query, p.stranger = p.out[:0], false, false, 0
	}
	m.identity.greetSelf = false
}
