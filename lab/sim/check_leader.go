package sim

// checkOneLeader is what I1 rests on where leaders change: at any true instant
// at most one manager has the authority to act. It is enough to look when a
// manager's authority begins or is extended; otherwise it only ends.
func (o *oracle) checkOneLeader(m *managerHost) {
	w := o.world
	if !m.node.Leads(m.clock.At(w.Now)) {
		return // it was elected so long ago that it may not act yet
	}
	o.checks[OneLeader]++
	for _, other := range w.managers {
		if other != m && other.alive && !other.asleep && other.node.Leads(other.clock.At(w.Now)) {
			o.world.Violated(OneLeader, "%s acts as leader while %s does", m.label, other.label)
		}
	}
}
