package sim

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// exchange is one round trip of I6: the message and its reply, the commit between them, the backoff if two
// messages cross, and the poll by which a standby detects that the leader's record stands still.
const exchange = 4*calmDelay + 200*time.Millisecond + simTTL/6 + 4*lateTimers

// bound is B of I6: (leader TTL + lease) x drift + 2 round trips, on the slowest clock.
//
// Without a store, restarted managers do not take part for a while. If a majority was restarted, the leader
// waits for leases that no manager has a record of. Then it takes a census of the owners.
func (o *oracle) bound() time.Duration {
	t := simTiming()
	b := t.Drift.Stretch(simTTL+t.Lease) + 2*exchange
	if o.cfg.Diskless {
		b += t.Drift.Stretch(simTTL+t.Lease) + 2*simEpsilon + 2*exchange
	}
	return time.Duration(float64(b) * float64(engine.TrueRate) / float64(slowest))
}

// recovered is I6: every key of a namespace with a living owner is owned, or moves from one owner to the
// next.
func (o *oracle) recovered() {
	o.Checks[I6Progress] += uint64(len(o.spaces))
	o.checkOwned(I6Progress, o.bound(), "after faults stopped")
}

// checkOwned checks that every key has an owner, some time after an event.
func (o *oracle) checkOwned(i engine.Invariant, d time.Duration, after string) {
	for _, s := range o.spaces {
		var owned []leasehold.Range
		living := 0
		for _, h := range s.owners {
			if !h.alive {
				continue
			}
			living++
			if h.valid() {
				for _, l := range h.view.Kept {
					owned = append(owned, l.Range)
				}
			}
			for _, l := range h.promises.dropped {
				owned = append(owned, l.Range)
			}
		}
		owned = append(owned, o.truth(s).underway(o.Now)...)
		if gaps := keyrange.NewSet(owned...).Gaps(); len(gaps) > 0 && living > 0 {
			o.Violated(i, "%v %s, %v of %s has no owner, although %d owners run", d, after, gaps, s.name, living)
			o.traceOwners(s)
		}
	}
}

// traceOwners writes the leaders' state of the owners of a namespace to the trace.
func (o *oracle) traceOwners(s *space) {
	for m, in := range o.leaders() {
		if in.space == s {
			for _, h := range in.Owners(m.now()) {
				o.Printf("%s has %v: standing %d, %d leases, patience %v", m.label, h.Holder, h.Standing, h.Leases, h.Patience)
			}
		}
	}
}

// checkDrained is I6 for operators: at the end of the world a drained owner holds nothing, if another owner
// can take its ranges, and no move is stuck.
func (o *oracle) checkDrained() {
	for m, in := range o.leaders() {
		if m.stopped != 0 {
			continue
		}
		o.Checks[I6Progress]++
		for _, mv := range in.Moves(m.now(), 1<<10) {
			if mv.Age > simMoveTimeout+2*time.Second {
				o.Violated(I6Progress, "the state of %v in %s has been moving from %s to %s for %v", mv.Range, in.space.name, mv.From, mv.To, mv.Age)
			}
		}
		o.checkHoldsNothing(in.space, in.Owners(m.now()))
	}
}

func (o *oracle) checkHoldsNothing(s *space, owners []manager.Owner) {
	takers := 0
	for _, h := range owners {
		if h.Standing == manager.Member && !h.Draining && !h.Parting {
			takers++
		}
	}
	for _, h := range owners {
		if h.Standing == manager.Member && h.Draining && h.Leases > 0 && takers > 0 {
			o.Violated(I6Progress, "%s of %s is drained and still holds %d leases, although %d others could take them", h.Holder, s.name, h.Leases, takers)
		}
	}
}

// transit is the maximum time that a range has no owner during a move without faults: one exchange between
// source and leader, one between leader and target, and the application's installation of the state.
const transit = 2*exchange + simInstall

func (o *oracle) addTransits(h *ownerHost, leases []leasehold.Lease) {
	t := o.truth(h.space)
	for _, l := range leases {
		t.transits = append(t.transits, passage{l.Range, o.Now})
	}
}

// passage is a range that has no owner because it moves, and the true time since when.
type passage struct {
	r     leasehold.Range
	since int64
}

// underway returns the ranges that have been moving for less than transit.
func (t *truth) underway(now int64) []leasehold.Range {
	var out []leasehold.Range
	for _, p := range t.transits {
		if time.Duration(now-p.since) < transit {
			out = append(out, p.r)
		}
	}
	return out
}

// checkSettled is I6 for lookups: at the end of the world they have the newest table.
func (o *oracle) checkSettled() {
	for _, l := range o.lookups {
		t := o.truth(l.space)
		if n := len(t.history); n > 0 && o.Now-t.history[n-1].at < int64(time.Second) {
			continue // the lookup may not have received it yet
		}
		o.Checks[I6Progress]++
		if l.watch.lsn != t.table.LSN() {
			o.Violated(I6Progress, "%s is still at lsn %d of %s, the table is at %d", l.label, l.watch.lsn, l.space.name, t.table.LSN())
		}
	}
}
