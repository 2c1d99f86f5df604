package sim

import "github.com/leasehold-dev/leasehold"

// checkExclusive is I1: at any true instant at most one owner's check of a key
// succeeds.
//
// It is enough to look when an owner has done something. Between its steps an
// owner's checks can only stop succeeding, so that an overlap begins with a
// step of one of the two.
func (o *oracle) checkExclusive(a *ownerHost) {
	if !a.valid() || a.beyond {
		return
	}
	o.checks[I1Exclusive]++
	for _, b := range o.world.owners {
		// An owner whose clock breaks the bound is beyond our promise; I9
		// speaks of it.
		if b == a || b.space != a.space || b.beyond || !b.valid() {
			continue
		}
		if la, lb, found := overlap(a.view.Leases, b.view.Leases); found {
			o.world.Violated(I1Exclusive, "%s (%v) checks %v while %s (%v) checks %v", a.label, a.holder, la, b.label, b.holder, lb)
			return
		}
	}
}

// checkQuarantine is what is left of I1 for an owner whose clock breaks the
// bound: once it has found that out, it holds nothing until it may try again.
func (o *oracle) checkQuarantine(h *ownerHost) {
	if len(h.view.Leases) > 0 && h.machine.Quarantined(h.clock.At(o.world.Now)) {
		o.world.Violated(I1Exclusive, "%s holds %v, although it knows that its clock is too slow", h.label, h.view.Leases[0])
	}
}

// overlap finds two leases that share a key. Both lists are sorted.
func overlap(a, b []leasehold.Lease) (la, lb leasehold.Lease, found bool) {
	for i, j := 0, 0; i < len(a) && j < len(b); {
		if a[i].Range.Overlaps(b[j].Range) {
			return a[i], b[j], true
		}
		if a[i].Range.Start < b[j].Range.Start {
			i++
		} else {
			j++
		}
	}
	return la, lb, false
}
