package flease

import "time"

// Late replies are usually in flight: the other members are busy. Retransmissions add to their
// load, and in a large group could exhaust it. So the round-trip time is measured, and nothing is
// sent again before a reply can be expected.

// updateRTT updates the round-trip time with that of a write.
func (m *Machine) updateRTT(d time.Duration) {
	m.proposer.rtt += (max(d, m.cfg.Resend/4) - m.proposer.rtt) / 8
}

// minWait is the minimum time to wait for a reply.
func (m *Machine) minWait() time.Duration { return min(3*m.proposer.rtt, m.cfg.Lease/8) }
