package fleasesim

// checkNews is L3 for time: what is over is not announced.
func (o *oracle) checkNews(p *process, r *resource) {
	o.checks[L3Released]++
	if !p.believes(r) {
		o.world.Violated(L3Released, "%s gets %s with fence %d, which is over by its own clocks", p.label, r.name, p.stakes[r.index].lease.Fence)
	}
}

// checkReleased is L3: after a release nothing is believed in before it is asked
// for again.
func (o *oracle) checkReleased(p *process, r *resource) {
	o.checks[L3Released]++
	if p.stakes[r.index].asked == nothing {
		o.world.Violated(L3Released, "%s gets %s, which it has not asked for since it released it", p.label, r.name)
	}
}
