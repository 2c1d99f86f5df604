package fleasesim

// checkSize is L6: a machine knows no more than it has room for.
func (o *oracle) checkSize(p *process) {
	o.checks[L6Bounded]++
	if n := p.machine.Size(); n > len(o.world.resources) {
		o.world.Violated(L6Bounded, "%s knows %d resources, and has room for %d", p.label, n, len(o.world.resources))
	}
}

// checkForgotten is L6 when all was released long ago: nothing is known any more.
func (o *oracle) checkForgotten() {
	for _, p := range o.world.processes {
		o.checks[L6Bounded]++
		if p.machine != nil && p.machine.Size() > 0 {
			o.world.Violated(L6Bounded, "%s still knows %d resources, long after everyone has released them", p.label, p.machine.Size())
			return
		}
	}
}
