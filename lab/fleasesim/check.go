package fleasesim

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// checkExclusive is L1. A belief begins when a process is told of it, or when
// its clock is set back; so it is enough to look then.
func (o *oracle) checkExclusive(p *process, r *resource) {
	o.Checks[L1Exclusive]++
	if !o.safe && !o.parted || !p.believes(r) {
		return
	}
	for _, other := range o.processes {
		if other != p && other.believes(r) {
			mine, its := &p.stakes[r.index], &other.stakes[r.index]
			o.Violated(L1Exclusive, "%s and %s both believe that they hold %s: with fence %d since %.6f, and with fence %d since %.6f",
				p.label, other.label, r.name, mine.lease.Fence, o.Seconds(mine.since), its.lease.Fence, o.Seconds(its.since))
			return
		}
	}
}

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
	o.Checks[L2Told]++
	asked := p.stakes[r.index].tried
	for _, other := range o.processes {
		s := &other.stakes[r.index]
		if other.believes(r) && s.since < asked && (other.id != n.Holder || s.lease.Fence != n.Fence) {
			o.Violated(L2Told, "%s is told that p%d has %s with fence %d, but %s has had it with %d since %.6f, before it was asked",
				p.label, n.Holder, r.name, n.Fence, other.label, s.lease.Fence, o.Seconds(s.since))
			return
		}
	}
	over := o.kind != Mono && p.time().Wall > n.Until.Add(o.epsilon)
	for _, t := range o.truths[r.index].tenures {
		if o.fenced && !over && t.began < asked && t.fence > n.Fence {
			o.Violated(L2Told, "%s is told that p%d has %s with fence %d, but %s had it with %d before it was asked",
				p.label, n.Holder, r.name, n.Fence, t.by.label, t.fence)
			return
		}
	}
	o.remember(p, r, n)
}

// checkSeen is L2, for those who watch: nobody sees itself have a lease that it has
// not. All else that is seen is a hint.
func (o *oracle) checkSeen(p *process, r *resource, n *flease.Notice) {
	o.Checks[L2Told]++
	if n.Holder == p.id && !p.stakes[r.index].held {
		o.Violated(L2Told, "%s sees itself have %s, with fence %d, and has it not", p.label, r.name, n.Fence)
	}
}

// remember keeps what was said, if it is true for as long as the holder's clock
// says: if that clock can be trusted, and if the holder has not released it.
func (o *oracle) remember(p *process, r *resource, n *flease.Notice) {
	holder := o.byID[n.Holder][0]
	if o.kind == Mono || holder.stakes[r.index].given >= n.Fence {
		return
	}
	t := &o.truths[r.index]
	t.told = append(t.told, told{p, o.Now, holder, n.Fence, n.Until})
}

// checkKept is L2, for the future: who was told that someone has a lease may
// rely on it that nobody else gets it before it ends, on the holder's clock,
// unless the holder releases it.
func (o *oracle) checkKept(p *process, r *resource) {
	t := &o.truths[r.index]
	t.told = slices.DeleteFunc(t.told, func(s told) bool {
		return s.holder.wall.At(o.Now) > s.until || s.holder.stakes[r.index].given >= s.fence
	})
	for _, s := range t.told {
		o.Checks[L2Told]++
		if p != s.holder {
			o.Violated(L2Told, "%s gets %s, but %s was told at %.6f that %s has it with fence %d until %.6f, where its clock shows %.6f",
				p.label, r.name, s.by.label, o.Seconds(s.at), s.holder.label, s.fence, o.Seconds(int64(s.until)), o.Seconds(int64(s.holder.wall.At(o.Now))))
			return
		}
	}
}

// checkNews is L3 for time: what is over is not announced.
func (o *oracle) checkNews(p *process, r *resource) {
	o.Checks[L3Released]++
	if !p.believes(r) {
		o.Violated(L3Released, "%s gets %s with fence %d, which is over by its own clocks", p.label, r.name, p.stakes[r.index].lease.Fence)
	}
}

// checkReleased is L3: after a release nothing is believed in before it is asked
// for again.
func (o *oracle) checkReleased(p *process, r *resource) {
	o.Checks[L3Released]++
	if p.stakes[r.index].asked == nothing {
		o.Violated(L3Released, "%s gets %s, which it has not asked for since it released it", p.label, r.name)
	}
}

// checkRises is L4: a tenure's fence is higher than those of all before it.
func (o *oracle) checkRises(p *process, r *resource, fence uint64) {
	if !o.fenced {
		return
	}
	o.Checks[L4Fences]++
	tenures := o.truths[r.index].tenures
	if len(tenures) == 0 {
		return
	}
	if t := tenures[len(tenures)-1]; t.fence >= fence { // which was higher than all before it
		o.Violated(L4Fences, "%s gets %s with fence %d, but %s had it with %d at %.6f", p.label, r.name, fence, t.by.label, t.fence, o.Seconds(t.began))
	}
}

// checkSame is L4 of a renewal: it does not change the fence, and there was no
// moment without the lease.
func (o *oracle) checkSame(p *process, r *resource, fence uint64) {
	o.Checks[L4Fences]++
	switch s := &p.stakes[r.index]; {
	case s.lease.Fence != fence:
		o.Violated(L4Fences, "%s renews %s with fence %d, but it had %d", p.label, r.name, fence, s.lease.Fence)
	case !p.believes(r):
		o.Violated(L4Fences, "%s renews %s, fence %d, which was over", p.label, r.name, fence)
	}
}

// checkSize is L6: a machine knows no more than it has room for.
func (o *oracle) checkSize(p *process) {
	o.Checks[L6Bounded]++
	if n := p.machine.Size(); n > len(o.resources) {
		o.Violated(L6Bounded, "%s knows %d resources, and has room for %d", p.label, n, len(o.resources))
	}
}

// checkForgotten is L6 when all was released long ago: nothing is known any more.
func (o *oracle) checkForgotten() {
	for _, p := range o.processes {
		o.Checks[L6Bounded]++
		if p.machine != nil && p.machine.Size() > 0 {
			o.Violated(L6Bounded, "%s still knows %d resources, long after everyone has released them", p.label, p.machine.Size())
			return
		}
	}
}

// answer is how long a try may take while all is well: some rounds, if those who
// try get in each other's way.
const answer = lease / 2

// checkKnown is L7 for those who do not ask: all members know who has had a lease
// for a while, also those who had forgotten, or took it for theirs.
func (o *oracle) checkKnown() {
	for _, r := range o.resources {
		for _, p := range o.processes {
			if !p.believes(r) || o.Now-p.stakes[r.index].since < int64(2*lease) {
				continue
			}
			for _, q := range o.processes {
				if !q.runs() || !q.member(r) {
					continue
				}
				o.Checks[L7Kept]++
				if n := q.machine.Look(q.time(), r.name); n.Holder != p.id {
					o.Violated(L7Kept, "%s has %s although nothing is wrong, and %s takes p%d for the holder", p.label, r.name, q.label, n.Holder)
					return
				}
			}
		}
	}
}

// checkLost is L7: while all is well, nobody loses a lease, however often others
// ask for it.
func (o *oracle) checkLost(p *process, r *resource) {
	if !o.calm() {
		return
	}
	o.Checks[L7Kept]++
	o.Violated(L7Kept, "%s loses %s although nothing is wrong", p.label, r.name)
}

// checkAnswer is L7 for those who ask: they are told, and soon.
func (o *oracle) checkAnswer(p *process, r *resource, n *flease.Notice) {
	s := &p.stakes[r.index]
	if !o.calm() || s.tried <= o.after.began {
		return
	}
	o.Checks[L7Kept]++
	switch took := time.Duration(o.Now - s.tried); {
	case took > answer:
		o.Violated(L7Kept, "%s has tried %s for %v although nothing is wrong", p.label, r.name, took)
	case n.What != flease.Refused && o.heldSince(r, s.tried):
		o.Violated(L7Kept, "%s has tried %s, which another has, and is told %q although nothing is wrong", p.label, r.name, n.What)
	}
}

// heldSince reports whether someone has had a resource since a time. If nobody
// has, those who try may get in each other's way.
func (o *oracle) heldSince(r *resource, at int64) bool {
	return slices.ContainsFunc(o.processes, func(p *process) bool { return p.believes(r) && p.stakes[r.index].since < at })
}

// checkUnanswered is L7 for those who are still not told.
func (o *oracle) checkUnanswered() {
	for _, p := range o.processes {
		for _, r := range o.resources {
			if s := &p.stakes[r.index]; p.runs() && s.asked == try && s.tried != 0 {
				o.checkAnswer(p, r, &flease.Notice{What: flease.Refused})
			}
		}
	}
}

func (o *oracle) calm() bool { return o.safe && o.after.phase == besieged }

// checkTwins is L8: a process that starts anew, however soon, and whatever of its
// former life is late, is not taken for a twin of itself.
func (o *oracle) checkTwins(p *process, n *flease.Notice) {
	o.Checks[L8Twins]++
	switch {
	case len(o.byID[n.Peer]) < 2:
		o.Violated(L8Twins, "%s finds that two processes p%d are alive, but there is one", p.label, n.Peer)
	case n.What == flease.GaveWay && n.Peer != p.id:
		o.Violated(L8Twins, "%s has given way to a twin of p%d", p.label, n.Peer)
	}
}

// checkParted is L8, when faults have ended and all have heard of each other since:
// no two processes with one id take part.
func (o *oracle) checkParted() {
	for _, twins := range o.byID {
		o.Checks[L8Twins]++
		if len(twins) > 1 && twins[0].takesPart() && twins[1].takesPart() {
			o.Violated(L8Twins, "%s and %s both take part, long after faults have ended", twins[0].label, twins[1].label)
		}
	}
}

func (p *process) takesPart() bool { return p.machine != nil && p.machine.Ready() }
