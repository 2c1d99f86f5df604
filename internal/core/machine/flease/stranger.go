package flease

import "time"

// Processes that were told of different members, or times, make majorities that
// need not overlap: to each other they are strangers. Which of two such groups
// goes on is decided by when processes start. Who takes part goes on, whoever comes.
// Who has just started does not take part while it hears strangers who do; and if
// all have just started, those who are more go on. It takes a time of recovery in
// which nobody was heard who has precedence: then majorities of both cannot come
// about, as long as they hear each other.

// An encounter is when a process was heard while we waited to take part.
type encounter struct {
	at       Time
	stranger bool
	waiting  bool // it did not take part either
}

// maxEncounters is how many strangers are counted.
const maxEncounters = 1024

// Greet has all peers greeted with the next Flush, and our own address, if we do not
// take part yet. The shell calls it at once and then some times until Ready, so that
// strangers and twins learn of us and answer.
func (m *Machine) Greet() {
	if m.admission.stage != silent {
		return
	}
	m.identity.hail = true
	for _, p := range m.order {
		p.greet = true
	}
}

// GreetEvery is how often Greet is to be called: many times while we wait.
func (m *Machine) GreetEvery() time.Duration {
	monotonic, wall := m.cfg.recovery()
	return min(monotonic, wall) / 20
}

// Strange hears the envelope of a stranger. It returns what to answer, if it is to
// be answered: who waits to take part must know that we are there.
func (m *Machine) Strange(now Time, e *Envelope) (answer Envelope, ok bool) {
	m.observe(now)
	if m.admission.stage == retired {
		return answer, false
	}
	answers := e.To == m.cfg.Incarnation // us, and is not to be answered
	_, wall := m.cfg.recovery()
	if !m.admission.ready() && (answers || now.Wall.Sub(e.Sent).Abs() <= wall) { // else it may be a replay
		m.saw(now, e, true)
		if !e.Waiting || m.outnumbered(now) {
			m.recover(now)
		}
	}
	return m.answerTo(now, e), e.Waiting && !answers
}

// saw notes who was heard while we wait.
func (m *Machine) saw(now Time, e *Envelope, stranger bool) {
	if m.admission.met == nil {
		m.admission.met = make(map[Process]encounter)
	}
	if _, known := m.admission.met[e.From]; known || len(m.admission.met) < len(m.order)+maxEncounters {
		m.admission.met[e.From] = encounter{now, stranger, e.Waiting}
	}
}

// outnumbered reports whether as many strangers as there are of us, or more, were
// heard in the last time of recovery. If one of us takes part already, they will
// have to wait.
func (m *Machine) outnumbered(now Time) bool {
	monotonic, _ := m.cfg.recovery()
	us, them := 1, 0
	for _, s := range m.admission.met {
		switch {
		case now.Mono.Sub(s.at.Mono) > monotonic:
		case s.stranger:
			them++
		case !s.waiting:
			return false
		default:
			us++
		}
	}
	return them >= us
}
