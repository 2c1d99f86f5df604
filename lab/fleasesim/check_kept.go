package fleasesim

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// answer is how long a try may take while all is well: some rounds, if those who
// try get in each other's way.
const answer = lease / 2

// checkKnown is L7 for those who do not ask: all members know who has had a lease
// for a while, also those who had forgotten, or took it for theirs.
func (o *oracle) checkKnown() {
	for _, r := range o.world.resources {
		for _, p := range o.world.processes {
			if !p.believes(r) || o.world.Now-p.stakes[r.index].since < int64(2*lease) {
				continue
			}
			for _, q := range o.world.processes {
				if !q.runs() || !q.member(r) {
					continue
				}
				o.checks[L7Kept]++
				if n := q.machine.Look(q.time(), r.name); n.Holder != p.id {
					o.world.Violated(L7Kept, "%s has %s although nothing is wrong, and %s takes p%d for the holder", p.label, r.name, q.label, n.Holder)
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
	o.checks[L7Kept]++
	o.world.Violated(L7Kept, "%s loses %s although nothing is wrong", p.label, r.name)
}

// checkAnswer is L7 for those who ask: they are told, and soon.
func (o *oracle) checkAnswer(p *process, r *resource, n *flease.Notice) {
	s := &p.stakes[r.index]
	if !o.calm() || s.tried <= o.world.after.began {
		return
	}
	o.checks[L7Kept]++
	switch took := time.Duration(o.world.Now - s.tried); {
	case took > answer:
		o.world.Violated(L7Kept, "%s has tried %s for %v although nothing is wrong", p.label, r.name, took)
	case n.What != flease.Refused && o.heldSince(r, s.tried):
		o.world.Violated(L7Kept, "%s has tried %s, which another has, and is told %q although nothing is wrong", p.label, r.name, n.What)
	}
}

// heldSince reports whether someone has had a resource since a time. If nobody
// has, those who try may get in each other's way.
func (o *oracle) heldSince(r *resource, at int64) bool {
	return slices.ContainsFunc(o.world.processes, func(p *process) bool { return p.believes(r) && p.stakes[r.index].since < at })
}

// checkUnanswered is L7 for those who are still not told.
func (o *oracle) checkUnanswered() {
	for _, p := range o.world.processes {
		for _, r := range o.world.resources {
			if s := &p.stakes[r.index]; p.runs() && s.asked == try && s.tried != 0 {
				o.checkAnswer(p, r, &flease.Notice{What: flease.Refused})
			}
		}
	}
}

func (o *oracle) calm() bool { return o.safe && o.world.after.phase == besieged }
