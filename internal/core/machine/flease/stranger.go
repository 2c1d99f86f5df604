package flease

import "time"

// Strangers are processes with a different configuration of members or times. Their majorities need
// not intersect with ours, so only one of two such groups may run. The start times decide: a
// process that participates continues. A process that has just started does not participate while
// it receives envelopes of strangers that do. If all have just started, the larger group continues.
// To participate, a process needs a recovery time without envelopes of processes with precedence:
// then both groups cannot have majorities, as long as they receive each other's envelopes.

// An encounter is the last envelope of a process while we wait to participate.
type encounter struct {
	at       Time
	stranger bool
	waiting  bool // it did not participate either
}

// maxEncounters limits the number of recorded strangers.
const maxEncounters = 1024

// Greet sends a greeting to all peers and to our own address with the next Flush, if we do not
// participate yet. The shell calls it at once and then repeatedly until Ready, so that strangers
// and twins receive it and reply.
func (m *Machine) Greet() {
	if m.admission.stage != silent {
		return
	}
	m.identity.greetSelf = true
	for _, p := range m.order {
		p.greet = true
	}
}

// GreetEvery is the interval for Greet: a fraction of the wait.
func (m *Machine) GreetEvery() time.Duration {
	monotonic, wall := m.cfg.recovery()
	return min(monotonic, wall) / 20
}

// Strange handles the envelope of a stranger. It returns a reply, if one is needed: a stranger that
// waits to participate must detect us.
func (m *Machine) Strange(now Time, e *Envelope) (answer Envelope, ok bool) {
	m.observe(now)
	if m.admission.stage == retired {
		return answer, false
	}
	answers := e.To == m.cfg.Incarnation // a reply to us, which is not answered
	_, wall := m.cfg.recovery()
	if !m.admission.ready() && (answers || now.Wall.Sub(e.Sent).Abs() <= wall) { // otherwise it may be a replay
		m.recordEncounter(now, e, true)
		if !e.Waiting || m.outnumbered(now) {
			m.recover(now)
		}
	}
	return m.answerTo(now, e), e.Waiting && !answers
}

// recordEncounter records the sender of an envelope while we wait.
func (m *Machine) recordEncounter(now Time, e *Envelope, stranger bool) {
	if m.admission.encounters == nil {
		m.admission.encounters = make(map[Process]encounter)
	}
	if _, known := m.admission.encounters[e.From]; known || len(m.admission.encounters) < len(m.order)+maxEncounters {
		m.admission.encounters[e.From] = encounter{now, stranger, e.Waiting}
	}
}

// outnumbered reports whether at least as many strangers as members of our group were received
// within the last recovery time. If one of our members participates already, the strangers have to
// wait.
func (m *Machine) outnumbered(now Time) bool {
	monotonic, _ := m.cfg.recovery()
	us, them := 1, 0
	for _, s := range m.admission.encounters {
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
