package owner

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// A leader is the manager that answers. heard and applied are numbers of its messages in term, and
// applied <= heard.
type leader struct {
	id      storage.ManagerID // empty: ask all managers
	term    leasehold.Term
	heard   protocol.Seq    // its newest message, whether or not it was dropped for a race
	applied protocol.Seq    // its newest message that was followed
	timing  protocol.Timing // zero until a leader told us
	// hold is the longest that a lease of any timing so far may be held: a leader may have to wait for leases
	// that were granted before the timing was changed.
	hold time.Duration

	silent storage.ManagerID // the last that did not answer
	// redirected: since the last miss a hint has been followed.
	redirected bool
	hinted     leasehold.Term // the newest term that a hint was about
}

// keep is how long we keep what we have confirmed after we last heard of it.
func (l *leader) keep() time.Duration { return 2 * l.hold }

func (l *leader) setTiming(t protocol.Timing) {
	l.timing = t
	l.hold = max(l.hold, t.Hold())
}

// goodbyeTime is for how long a goodbye is worth waiting for: as long as a leader takes our leases for
// ours without a word from us. After that there is nothing to give back.
func (l *leader) goodbyeTime() time.Duration {
	t := l.timing
	if t.Lease == 0 {
		t = protocol.DefaultTiming() // we have heard of no leader
	}
	return t.Drift.Stretch(t.Lease)
}
