package fleasesim

import (
	"slices"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// told is what a process was told about someone else's lease.
type told struct {
	by     *process // who was told
	at     int64
	holder *process
	fence  uint64
	until  flease.Wall
}

// checkTold is L2, for the past: an answer is about the time between question
// and answer. It is wrong if someone else has believed in the lease for all of
// that time, or if a later tenure had begun before the question; unless who is told
// can see that the lease is over, which an acceptor does not say as long as its
// monotonic clock stands still.
func (o *oracle) checkTold(p *process, r *resource, n *flease.Notice) {
	if !o.safe {
		return
	}
	o.checks[L2Told]++
	asked := p.stakes[r.index].tried
	for _, other := range o.world.processes {
		s := &other.stakes[r.index]
		if other.believes(r) && s.since < asked && (other.id != n.Holder || s.lease.Fence != n.Fence) {
			o.world.Violated(L2Told, "%s is told that p%d has %s with fence %d, but %s has had it with %d since %.6f, before it was asked",
				p.label, n.Holder, r.name, n.Fence, other.label, s.lease.Fence, o.world.Seconds(s.since))
			return
		}
	}
	over := o.world.kind != Mono && p.time().Wall > n.Until.Add(o.world.epsilon)
	for _, t := range o.truths[r.index].tenures {
		if o.fenced && !over && t.began < asked && t.fence > n.Fence {
			o.world.Violated(L2Told, "%s is told that p%d has %s with fence %d, but %s had it with %d before it was asked",
				p.label, n.Holder, r.name, n.Fence, t.by.label, t.fence)
			return
		}
	}
	o.remember(p, r, n)
}

// checkSeen is L2, for those who watch: nobody sees itself have a lease that it has
// not. All else that is seen is a hint.
func (o *oracle) checkSeen(p *process, r *resource, n *flease.Notice) {
	o.checks[L2Told]++
	if n.Holder == p.id && !p.stakes[r.index].held {
		o.world.Violated(L2Told, "%s sees itself have %s, with fence %d, and has it not", p.label, r.name, n.Fence)
	}
}

// remember keeps what was said, if it is true for as long as the holder's clock
// says: if that clock can be trusted, and if the holder has not released it.
func (o *oracle) remember(p *process, r *resource, n *flease.Notice) {
	holder := o.world.byID[n.Holder][0]
	if o.world.kind == Mono || holder.stakes[r.index].given >= n.Fence {
		return
	}
	t := &o.truths[r.index]
	t.told = append(t.told, told{p, o.world.Now, holder, n.Fence, n.Until})
}

// checkKept is L2, for the future: who was told that someone has a lease may
// rely on it that nobody else gets it before it ends, on the holder's clock,
// unless the holder releases it.
func (o *oracle) checkKept(p *process, r *resource) {
	t := &o.truths[r.index]
	t.told = slices.DeleteFunc(t.told, func(s told) bool {
		return s.holder.wall.At(o.world.Now) > s.until || s.holder.stakes[r.index].given >= s.fence
	})
	for _, s := range t.told {
		o.checks[L2Told]++
		if p != s.holder {
			o.world.Violated(L2Told, "%s gets %s, but %s was told at %.6f that %s has it with fence %d until %.6f, where its clock shows %.6f",
				p.label, r.name, s.by.label, o.world.Seconds(s.at), s.holder.label, s.fence, o.world.Seconds(int64(s.until)), o.world.Seconds(int64(s.holder.wall.At(o.world.Now))))
			return
		}
	}
}
