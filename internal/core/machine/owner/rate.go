package owner

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// A rateGuard detects that the owner's clock is slower than the leader's by more than the drift
// bound. Then a lease may be valid here after the leader has expired it, and only fencing
// tokens prevent two owners. A clock that is too fast is safe: leases end early.
//
// The leader stamps each reply with its clock, between the sending of the request and the receipt
// of the reply. Between two replies the leader's clock has advanced by the difference of the
// stamps. The owner's clock has advanced by at most the time from sending the first request
// to receiving the second reply. If the leader's time exceeds the owner's time stretched by the
// drift bound, message delays cannot be the cause.
type rateGuard struct {
	from sample
	set  bool
}

// A clockGuard prevents an owner whose clock is too slow from holding leases.
type clockGuard struct {
	rate          rateGuard
	quarantines   int          // so far
	quarantineEnd mono.Instant // until then no request is sent and no reply is accepted
}

// Quarantined reports whether the owner holds no leases at now because its clock was too slow.
func (m *Machine) Quarantined(now mono.Instant) bool { return now < m.clock.quarantineEnd }

// quarantine drops all leases, and stops requests and replies, so that the leader grants the
// ranges to owners with better clocks. The duration doubles each time.
func (m *Machine) quarantine(now mono.Instant) {
	m.dropAll(leasehold.CauseExpired)
	m.loseContact()
	m.clock.rate = rateGuard{}
	m.clock.quarantineEnd = now.Add(2 * m.leader.timing.Lease << min(m.clock.quarantines, 8))
	m.clock.quarantines++
}

type sample struct {
	sent, received mono.Instant // on the owner's clock
	clock          mono.Instant // on the leader's clock, between the two
}

// acceptable reports whether a reply that was received at now, to a request that was sent at sent, is
// possible within the drift bound.
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
	// In a long window message delays matter less. A window that is too long hides changes of the
	// rate.
	if ours > 4*r.Timing.Lease || theirs < 0 {
		g.from = s
	}
	return true
}
