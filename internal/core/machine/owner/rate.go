package owner

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// A rateGuard finds out that our clock runs more slowly than the leader's by
// more than the drift bound allows: then our leases may outlive the leader's
// patience, and the promise of one owner at a time rests on the fencing token
// alone. The opposite error is harmless: our leases only end early.
//
// The leader stamps each reply between our sending of the request and our
// hearing of the answer. Between two replies its clock has advanced by the
// difference of the stamps, while ours has advanced by no more than the time
// from the first sending to the second hearing. If the first is more than the
// drift bound times the second, no delay of messages can be the reason.
type rateGuard struct {
	from sample
	set  bool
}

// A clockGuard keeps an owner without leases while its clock is too slow for them.
type clockGuard struct {
	rate        rateGuard
	quarantines int          // how often the clock was found too slow
	muteUntil   mono.Instant // until when, because of that, nothing is sent or received
}

// Quarantined reports whether the owner has found its clock too slow to hold
// leases at now.
func (m *Machine) Quarantined(now mono.Instant) bool { return now < m.clock.muteUntil }

// quarantine drops all leases and falls silent and deaf, so that the leader
// gives them to owners with better clocks. Each time it lasts twice as long.
func (m *Machine) quarantine(now mono.Instant) {
	m.dropAll(leasehold.CauseExpired)
	m.loseContact()
	m.clock.rate = rateGuard{}
	m.clock.muteUntil = now.Add(2 * m.leader.timing.Lease << min(m.clock.quarantines, 8))
	m.clock.quarantines++
}

type sample struct {
	sent, heard mono.Instant // ours
	clock       mono.Instant // the leader's, somewhere in between
}

// acceptable reports whether the reply, heard at now in answer to what was
// sent at sent, is possible within the drift bound.
func (g *rateGuard) acceptable(now, sent mono.Instant, r *protocol.LeaseReply) bool {
	s := sample{sent, now, r.Clock}
	if !g.set {
		g.from, g.set = s, true
		return true
	}
	theirs := r.Clock.Sub(g.from.clock)
	ours := now.Sub(g.from.sent)
	if theirs > r.Timing.Drift.Stretch(ours) {
		return false
	}
	// A long window makes the delays small against it; too long a one hides a
	// rate that changes.
	if ours > 4*r.Timing.Lease || theirs < 0 {
		g.from = s
	}
	return true
}
