package manager

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// A snapshot of an owner's computer that is started beside the original makes two processes
// with one session. Each takes the leader's answers to the other for its own, so that both may
// hold the same lease, until the leader notices. A process uses a sequence number once, and
// names the newest message that it has heard ever after; two processes contradict each other
// in that.
//
// No leader can tell which of the two has the state that counts. So it hears neither, and
// their leases expire. Suspended leases make both claim them for as long as they live: so the
// session is remembered, whether or not it has leases, until only one process has spoken in it
// for the time of a lease.

// A duplicate is a session in which two processes speak.
type duplicate struct {
	lastSeq, lastAck protocol.Seq // of the newest request
	until            mono.Instant // when it is forgotten, if only one process goes on
}

// duplicated reports whether a request is to be ignored, because two processes speak in its
// session.
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

// addDuplicate remembers a session, and forgets those that are over. If there are as many as
// may be heard at a time it is not remembered: its next contradiction will be noticed again.
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
