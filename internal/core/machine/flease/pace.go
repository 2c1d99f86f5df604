package flease

import "time"

// Answers that take long are on their way, more often than not: the others have
// much to do. To ask again gives them more to do, and if all members of a large
// group did so they would come to nothing else. So how long an answer takes is
// measured, and nobody asks again before.

// took learns how long the answers to a write took.
func (m *Machine) took(d time.Duration) {
	m.proposer.trip += (max(d, m.cfg.Resend/4) - m.proposer.trip) / 8
}

// patience is how long an answer is waited for at least.
func (m *Machine) patience() time.Duration { return min(3*m.proposer.trip, m.cfg.Lease/8) }
