package owner

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// leader is what the owner knows about the leader. received and applied are sequence numbers of its replies
// in term, and applied <= received.
type leader struct {
	id       storage.ManagerID // empty: requests go to all managers
	term     leasehold.Term
	received protocol.Seq    // the newest reply, whether or not it was dropped as a race
	applied  protocol.Seq    // the newest reply that was accepted
	timing   protocol.Timing // zero until the first reply
	// hold is the maximum of Timing.Hold so far: a leader may have to wait for leases that were granted
	// before the timing was changed.
	hold time.Duration

	silent storage.ManagerID // the last leader that did not reply
	// redirected: the owner has followed a hint since the last miss.
	redirected bool
	hinted     leasehold.Term // the highest term of a hint
	// joined: Joined was emitted, and no other session had the name since.
	joined bool
}

// acked returns the term whose leader a request acknowledges now, 0 if it acknowledges none.
func (l *leader) acked() leasehold.Term {
	if l.applied == 0 {
		return 0
	}
	return l.term
}

// keep is how long confirmed state is kept after a leader last ordered the move.
func (l *leader) keep() time.Duration { return 2 * l.hold }

func (l *leader) setTiming(t protocol.Timing) {
	l.timing = t
	l.hold = max(l.hold, t.Hold())
}

// goodbyeTimeout is how long a leaving owner waits for the acknowledgement: until the leader expires its
// leases without a request. After that there is nothing to release.
func (l *leader) goodbyeTimeout() time.Duration {
	t := l.timing
	if t.Lease == 0 {
		t = protocol.DefaultTiming() // no leader has replied
	}
	return t.Drift.Stretch(t.Lease)
}
