package manager

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// If a snapshot of an owner's computer is started beside the original, two processes use one session. Each accepts
// the leader's replies to the other, so both may hold the same lease until the leader detects it. A single process
// uses each sequence number once, and never acknowledges an older message than before. Requests of two processes
// violate this.
//
// The leader cannot know which of the two has the current state. So it ignores both, and their leases expire. With
// suspended leases both processes claim them indefinitely. So the session stays marked, with or without leases,
// until only one process has used it for one lease time.

// A duplicate is a session that two processes use.
type duplicate struct {
	lastSeq, lastAck protocol.Seq // of the newest request
	until            mono.Instant // when the mark is removed, if only one process continues
}

// duplicated reports whether a request must be ignored, because two processes use its session.
func (m *Machine) duplicated(now mono.Instant, r *protocol.LeaseRequest) bool {
	session := r.Holder.Session
	if d := m.members.duplicates[session]; d != nil {
		if r.Seq <= d.lastSeq || r.Heard != d.lastAck {
			d.until = now.Add(m.cfg.Timing.Hold())
		}
		d.lastSeq, d.lastAck = max(d.lastSeq, r.Seq), r.Heard
		if now < d.until {
			return true
		}
		delete(m.members.duplicates, session)
	}
	p := m.members.sessions[session]
	if p == nil || r.Term != m.lead.term || r.Heard > p.acks.sent {
		return false
	}
	if r.Seq > p.acks.lastSeq && r.Heard < p.acks.lastAck || r.Seq == p.acks.lastSeq && r.Heard != p.acks.lastAck {
		m.emit(Note{What: NoteCopy, Owner: r.Holder.Owner, Seq: r.Heard, NewestSeq: p.acks.lastAck})
		m.addDuplicate(now, session, &duplicate{lastSeq: max(r.Seq, p.acks.lastSeq), lastAck: r.Heard, until: now.Add(m.cfg.Timing.Hold())})
		return true
	}
	if r.Seq > p.acks.lastSeq {
		p.acks.lastSeq, p.acks.lastAck = r.Seq, max(p.acks.lastAck, r.Heard)
	}
	return false
}

// addDuplicate marks a session, and removes marks that have ended. Beyond MaxOwners marks, a session is not marked:
// its next contradiction is detected again.
func (m *Machine) addDuplicate(now mono.Instant, s leasehold.Session, d *duplicate) {
	if m.members.duplicates == nil {
		m.members.duplicates = make(map[leasehold.Session]*duplicate)
	}
	for other, old := range m.members.duplicates {
		if now >= old.until {
			delete(m.members.duplicates, other)
		}
	}
	if len(m.members.duplicates) < m.cfg.MaxOwners {
		m.members.duplicates[s] = d
	}
}
