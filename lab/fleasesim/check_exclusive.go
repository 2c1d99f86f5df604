package fleasesim

// checkExclusive is L1. A belief begins when a process is told of it, or when
// its clock is set back; so it is enough to look then.
func (o *oracle) checkExclusive(p *process, r *resource) {
	o.checks[L1Exclusive]++
	if !o.safe && !o.parted || !p.believes(r) {
		return
	}
	for _, other := range o.world.processes {
		if other != p && other.believes(r) {
			mine, its := &p.stakes[r.index], &other.stakes[r.index]
			o.world.Violated(L1Exclusive, "%s and %s both believe that they hold %s: with fence %d since %.6f, and with fence %d since %.6f",
				p.label, other.label, r.name, mine.lease.Fence, o.world.Seconds(mine.since), its.lease.Fence, o.world.Seconds(its.since))
			return
		}
	}
}
