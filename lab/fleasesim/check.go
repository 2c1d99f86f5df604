package fleasesim

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// checkExclusive is L1. A process starts to hold a lease when it is notified, or when its clock is set back,
// so a check at these times is enough.
func (o *oracle) checkExclusive(p *process, r *resource) {
	o.Checks[L1Exclusive]++
	if !o.safe && !o.parted || !p.holds(r) {
		return
	}
	for _, other := range o.processes {
		if other != p && other.holds(r) {
			mine, its := &p.stakes[r.index], &other.stakes[r.index]
			o.Violated(L1Exclusive, "%s and %s both hold %s: with fence %d since %.6f, and with fence %d since %.6f",
				p.label, other.label, r.name, mine.lease.Fence, o.Seconds(mine.since), its.lease.Fence, o.Seconds(its.since))
			return
		}
	}
}

// A report is the notice that another process has a lease.
type report struct {
	by     *process // the receiver
	at     int64
	holder *process
	fence  uint64
	until  flease.Wall
}

// checkReported is L2 for the past: a reply is about the time between request and reply. It is wrong if
// another process has held the lease for all of that time, or if a later tenure had begun before the request.
// The exception is a lease that has expired on the clock of the receiver: an acceptor reports it while its
// monotonic clock stands still.
func (o *oracle) checkReported(p *process, r *resource, n *flease.Notice) {
	if !o.safe {
		return
	}
	o.Checks[L2Told]++
	asked := p.stakes[r.index].tried
	for _, other := range o.processes {
		s := &other.stakes[r.index]
		if other.holds(r) && s.since < asked && (other.id != n.Holder || s.lease.Fence != n.Fence) {
			o.Violated(L2Told, "%s receives that p%d has %s with fence %d, but %s has had it with %d since %.6f, before the request",
				p.label, n.Holder, r.name, n.Fence, other.label, s.lease.Fence, o.Seconds(s.since))
			return
		}
	}
	over := o.kind != Mono && p.time().Wall > n.Until.Add(o.epsilon)
	for _, t := range o.truths[r.index].tenures {
		if o.fenced && !over && t.began < asked && t.fence > n.Fence {
			o.Violated(L2Told, "%s receives that p%d has %s with fence %d, but %s had it with %d before the request",
				p.label, n.Holder, r.name, n.Fence, t.by.label, t.fence)
			return
		}
	}
	o.remember(p, r, n)
}

// checkSeen is L2 for watchers: no process receives a notice that it has a lease itself that it does not
// have. All other notices of a watch are hints.
func (o *oracle) checkSeen(p *process, r *resource, n *flease.Notice) {
	o.Checks[L2Told]++
	if n.Holder == p.id && !p.stakes[r.index].held {
		o.Violated(L2Told, "the watch of %s reports its own lease of %s, with fence %d, which it does not have", p.label, r.name, n.Fence)
	}
}

// remember records a report that stays true until its end on the holder's clock: the clock is reliable, and
// the holder has not released the lease.
func (o *oracle) remember(p *process, r *resource, n *flease.Notice) {
	holder := o.byID[n.Holder][0]
	if o.kind == Mono || holder.stakes[r.index].given >= n.Fence {
		return
	}
	t := &o.truths[r.index]
	t.reports = append(t.reports, report{p, o.Now, holder, n.Fence, n.Until})
}

// checkKept is L2 for the future: after a report, no other process gets the lease before it ends on the
// holder's clock, unless the holder releases it.
func (o *oracle) checkKept(p *process, r *resource) {
	t := &o.truths[r.index]
	t.reports = slices.DeleteFunc(t.reports, func(s report) bool {
		return s.holder.wall.At(o.Now) > s.until || s.holder.stakes[r.index].given >= s.fence
	})
	for _, s := range t.reports {
		o.Checks[L2Told]++
		if p != s.holder {
			o.Violated(L2Told, "%s gets %s, but %s received at %.6f that %s has it with fence %d until %.6f, and the clock of the holder is at %.6f",
				p.label, r.name, s.by.label, o.Seconds(s.at), s.holder.label, s.fence, o.Seconds(int64(s.until)), o.Seconds(int64(s.holder.wall.At(o.Now))))
			return
		}
	}
}

// checkNews is L3 for time: a new lease has not expired.
func (o *oracle) checkNews(p *process, r *resource) {
	o.Checks[L3Released]++
	if !p.holds(r) {
		o.Violated(L3Released, "%s gets %s with fence %d, which has expired on its own clocks", p.label, r.name, p.stakes[r.index].lease.Fence)
	}
}

// checkReleased is L3: after a release a process has no lease before it requests one again.
func (o *oracle) checkReleased(p *process, r *resource) {
	o.Checks[L3Released]++
	if p.stakes[r.index].asked == nothing {
		o.Violated(L3Released, "%s gets %s, which it has not requested since it released it", p.label, r.name)
	}
}

// checkRises is L4: the fence of a tenure is higher than those of all tenures before it.
func (o *oracle) checkRises(p *process, r *resource, fence uint64) {
	if !o.fenced {
		return
	}
	o.Checks[L4Fences]++
	tenures := o.truths[r.index].tenures
	if len(tenures) == 0 {
		return
	}
	if t := tenures[len(tenures)-1]; t.fence >= fence { // the highest so far
		o.Violated(L4Fences, "%s gets %s with fence %d, but %s had it with %d at %.6f", p.label, r.name, fence, t.by.label, t.fence, o.Seconds(t.began))
	}
}

// checkSame is L4 for a renewal: it does not change the fence, and the lease has not expired.
func (o *oracle) checkSame(p *process, r *resource, fence uint64) {
	o.Checks[L4Fences]++
	switch s := &p.stakes[r.index]; {
	case s.lease.Fence != fence:
		o.Violated(L4Fences, "%s renews %s with fence %d, but it had %d", p.label, r.name, fence, s.lease.Fence)
	case !p.holds(r):
		o.Violated(L4Fences, "%s renews %s, fence %d, which has expired", p.label, r.name, fence)
	}
}

// checkSize is L6: the state of a machine is bounded.
func (o *oracle) checkSize(p *process) {
	o.Checks[L6Bounded]++
	if n := p.machine.Size(); n > len(o.resources) {
		o.Violated(L6Bounded, "%s has state of %d resources, the limit is %d", p.label, n, len(o.resources))
	}
}

// checkRemoved is L6 long after the release of all leases: there is no state of any resource.
func (o *oracle) checkRemoved() {
	for _, p := range o.processes {
		o.Checks[L6Bounded]++
		if p.machine != nil && p.machine.Size() > 0 {
			o.Violated(L6Bounded, "%s has state of %d resources, long after all were released", p.label, p.machine.Size())
			return
		}
	}
}

// maxTryTime is the maximum time of a try without faults: some rounds, because proposers conflict.
const maxTryTime = lease / 2

// checkKnown is L7 for members that do not try: all members have the holder of a lease that is older than two
// leases, also members that had lost their state, or held the lease before.
func (o *oracle) checkKnown() {
	for _, r := range o.resources {
		for _, p := range o.processes {
			if !p.holds(r) || o.Now-p.stakes[r.index].since < int64(2*lease) {
				continue
			}
			for _, q := range o.processes {
				if !q.runs() || !q.member(r) {
					continue
				}
				o.Checks[L7Kept]++
				if n := q.machine.Look(q.time(), r.name); n.Holder != p.id {
					o.Violated(L7Kept, "%s has %s and there are no faults, but for %s the holder is p%d", p.label, r.name, q.label, n.Holder)
					return
				}
			}
		}
	}
}

// checkLost is L7: without faults no process loses a lease, however often others try to acquire it.
func (o *oracle) checkLost(p *process, r *resource) {
	if !o.calm() {
		return
	}
	o.Checks[L7Kept]++
	o.Violated(L7Kept, "%s loses %s without a fault", p.label, r.name)
}

// checkAnswer is L7 for a try: it is answered in time.
func (o *oracle) checkAnswer(p *process, r *resource, n *flease.Notice) {
	s := &p.stakes[r.index]
	if !o.calm() || s.tried <= o.after.began {
		return
	}
	o.Checks[L7Kept]++
	switch took := time.Duration(o.Now - s.tried); {
	case took > maxTryTime:
		o.Violated(L7Kept, "%s has been trying %s for %v without a fault", p.label, r.name, took)
	case n.What != flease.Refused && o.heldSince(r, s.tried):
		o.Violated(L7Kept, "%s has tried %s, which another process has, and the result is %q without a fault", p.label, r.name, n.What)
	}
}

// heldSince reports whether some process has held a resource since a time. Without a holder, tries can
// conflict.
func (o *oracle) heldSince(r *resource, at int64) bool {
	return slices.ContainsFunc(o.processes, func(p *process) bool { return p.holds(r) && p.stakes[r.index].since < at })
}

// checkUnanswered is L7 for tries that have no answer yet.
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

// checkTwins is L8: a restarted process is not mistaken for a twin of itself, however fast it restarts and
// however late packets of its previous incarnation are.
func (o *oracle) checkTwins(p *process, n *flease.Notice) {
	o.Checks[L8Twins]++
	switch {
	case len(o.byID[n.Peer]) < 2:
		o.Violated(L8Twins, "%s detects two processes p%d, but there is one", p.label, n.Peer)
	case n.What == flease.GaveWay && n.Peer != p.id:
		o.Violated(L8Twins, "%s has given way to a twin of p%d", p.label, n.Peer)
	}
}

// checkParted is L8 when the faults have ended and all processes have exchanged packets: no two processes
// with one ID take part.
func (o *oracle) checkParted() {
	for _, twins := range o.byID {
		o.Checks[L8Twins]++
		if len(twins) > 1 && twins[0].takesPart() && twins[1].takesPart() {
			o.Violated(L8Twins, "%s and %s both take part, long after the faults have ended", twins[0].label, twins[1].label)
		}
	}
}

func (p *process) takesPart() bool { return p.machine != nil && p.machine.Ready() }
