package sim

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/keyrange"
)

// exchange is one round trip of I6, with all that belongs to it: the message
// and its answer, the commit between them, the backoff if two messages cross,
// and the poll by which a standby learns that the leader's record stands still.
const exchange = 4*calmDelay + 200*time.Millisecond + simTTL/6 + 4*lateTimers

// bound is B of I6: (leader TTL + lease) x drift + 2 round trips, on the
// slowest clock that there may be.
func (o *oracle) bound() time.Duration {
	t := simTiming()
	b := t.Drift.Stretch(simTTL+t.Lease) + 2*exchange
	return time.Duration(float64(b) * float64(trueRate) / float64(slowest))
}

// recovered is I6: by now every key must be owned, in every namespace that has
// a living owner.
func (o *oracle) recovered() {
	for _, s := range o.world.spaces {
		o.checks[I6Progress]++
		var owned []leasehold.Range
		living := 0
		for _, h := range o.world.owners {
			if h.space != s || !h.alive {
				continue
			}
			living++
			if h.valid() {
				for _, l := range h.view.Leases {
					owned = append(owned, l.Range)
				}
			}
		}
		if gaps := keyrange.NewSet(owned...).Gaps(); len(gaps) > 0 && living > 0 {
			o.violated(I6Progress, "%v after faults stopped nobody owns %v of %s, although %d owners live", o.bound(), gaps, s.name, living)
		}
	}
}

// checkSettled is I6 for lookups: at the end of the world they know the table.
func (o *oracle) checkSettled() {
	for _, l := range o.world.lookups {
		t := o.truth(l.space)
		if n := len(t.history); n > 0 && o.world.now-t.history[n-1].at < int64(time.Second) {
			continue // too recent to have been heard
		}
		o.checks[I6Progress]++
		if l.watch.lsn != t.table.LSN() {
			o.violated(I6Progress, "%s is still at lsn %d of %s, the table is at %d", l.label, l.watch.lsn, l.space.name, t.table.LSN())
		}
	}
}
