package fleasesim

// checkRises is L4: a tenure's fence is higher than those of all before it.
func (o *oracle) checkRises(p *process, r *resource, fence uint64) {
	if !o.fenced {
		return
	}
	o.checks[L4Fences]++
	tenures := o.truths[r.index].tenures
	if len(tenures) == 0 {
		return
	}
	if t := tenures[len(tenures)-1]; t.fence >= fence { // which was higher than all before it
		o.world.Violated(L4Fences, "%s gets %s with fence %d, but %s had it with %d at %.6f", p.label, r.name, fence, t.by.label, t.fence, o.world.Seconds(t.began))
	}
}

// checkSame is L4 of a renewal: it does not change the fence, and there was no
// moment without the lease.
func (o *oracle) checkSame(p *process, r *resource, fence uint64) {
	o.checks[L4Fences]++
	switch s := &p.stakes[r.index]; {
	case s.lease.Fence != fence:
		o.world.Violated(L4Fences, "%s renews %s with fence %d, but it had %d", p.label, r.name, fence, s.lease.Fence)
	case !p.believes(r):
		o.world.Violated(L4Fences, "%s renews %s, fence %d, which was over", p.label, r.name, fence)
	}
}
