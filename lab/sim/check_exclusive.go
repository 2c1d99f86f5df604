package sim

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

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
	o.Checks[I1Exclusive]++
	for _, b := range a.space.owners {
		// An owner whose clock breaks the bound is beyond our promise; I9
		// speaks of it.
		if b == a || b.beyond || !b.valid() {
			continue
		}
		if la, lb, found := overlap(a.view.Leases, b.view.Leases); found {
			o.Violated(I1Exclusive, "%s (%v) checks %v while %s (%v) checks %v", a.label, a.holder, la, b.label, b.holder, lb)
			return
		}
	}
}

// checkQuarantine is what is left of I1 for an owner whose clock breaks the
// bound: once it has found that out, it holds nothing until it may try again.
func (o *oracle) checkQuarantine(h *ownerHost) {
	if len(h.view.Leases) > 0 && h.machine.Quarantined(h.now()) {
		o.Violated(I1Exclusive, "%s holds %v, although it knows that its clock is too slow", h.label, h.view.Leases[0])
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

// checkGaps watches the leases that operations rely on: one that a new view does not have
// has ended. One that was suspended and is renewed has not: no other owner acted on its
// keys, which held checks.
func (o *oracle) checkGaps(h *ownerHost, to *owner.View) {
	for _, op := range h.ops {
		if !keeps(to, op.key, op.lease.Generation) {
			op.broken = true
		}
	}
}

// keeps reports whether an owner has a lease, even if it must not serve its keys
// for a moment because they are about to move.
func keeps(v *owner.View, key leasehold.Key, g leasehold.Generation) bool {
	return slices.ContainsFunc(v.Kept, func(l leasehold.Lease) bool { return l.Generation == g && l.Range.Contains(key) })
}

// held is I3: an owner says that it has held a lease since it was checked.
func (o *oracle) held(h *ownerHost, op *operation) {
	o.Checks[I3Held]++
	if h.beyond {
		return
	}
	if op.broken {
		o.Violated(I3Held, "%s says that it held %v all along, but it had ended", h.label, op.lease)
		return
	}
	// Where an owner's clock was ever broken, it may have been the one that took
	// hold, and nothing is promised.
	t := o.truth(h.space)
	for i := len(t.taken) - 1; i >= 0 && t.taken[i].at > op.checked; i-- {
		if k := t.taken[i]; k.session != h.holder.Session && k.r.Contains(op.key) && !o.nemesis.beyond {
			o.Violated(I3Held, "%s says that it held %v all along, but session %s took hold of %v", h.label, op.lease, k.session.Short(), k.r)
			return
		}
	}
}

// checkConfession looks at what an owner says it holds: it must say everything
// that a check could still succeed on, or the leader gives it to others.
func (o *oracle) checkConfession(h *ownerHost, r *protocol.LeaseRequest) {
	o.Checks[I1Exclusive]++
	if h.now() >= h.view.Until {
		return
	}
	if missing := protocol.Missing(h.view.Leases, r.Leases); len(missing) > 0 {
		o.Violated(I1Exclusive, "%s does not say that it has %v, while its checks succeed", h.label, missing[0])
	}
}
