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
// A check after each step of an owner is enough. Between its steps an owner's checks can only change to
// failure, so an overlap begins with a step of one of the two.
func (o *oracle) checkExclusive(a *ownerHost) {
	if !a.valid() || a.beyond {
		return
	}
	o.Checks[I1Exclusive]++
	for _, b := range a.space.owners {
		// An owner whose clock breaks the bound is outside of the guarantee; I9 covers it.
		if b == a || b.beyond || !b.valid() {
			continue
		}
		if la, lb, found := overlap(a.view.Leases, b.view.Leases); found {
			o.Violated(I1Exclusive, "%s (%v) checks %v while %s (%v) checks %v", a.label, a.holder, la, b.label, b.holder, lb)
			return
		}
	}
}

// checkQuarantine is the rest of I1 for an owner whose clock breaks the bound: after it has detected that, it
// holds nothing until the quarantine ends.
func (o *oracle) checkQuarantine(h *ownerHost) {
	if len(h.view.Leases) > 0 && h.machine.Quarantined(h.now()) {
		o.Violated(I1Exclusive, "%s holds %v, although it has detected that its clock is too slow", h.label, h.view.Leases[0])
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

// checkGaps marks operations whose lease is not in a new view: it has ended. A lease that was suspended and
// then renewed has not ended: no other owner acted on its keys.
func (o *oracle) checkGaps(h *ownerHost, to *owner.View) {
	for _, op := range h.ops {
		if !keeps(to, op.key, op.lease.Generation) {
			op.broken = true
		}
	}
}

// keeps reports whether an owner has a lease, even if it does not serve the key at the moment because it is
// about to move.
func keeps(v *owner.View, key leasehold.Key, g leasehold.Generation) bool {
	return slices.ContainsFunc(v.Kept, func(l leasehold.Lease) bool { return l.Generation == g && l.Range.Contains(key) })
}

// checkHeld is I3: an owner's Held has returned true.
func (o *oracle) checkHeld(h *ownerHost, op *operation) {
	o.Checks[I3Held]++
	if h.beyond {
		return
	}
	if op.broken {
		o.Violated(I3Held, "Held of %s is true for %v, but the lease had ended", h.label, op.lease)
		return
	}
	// Where a clock was ever too slow, its owner may be the one that served the key, and there is no
	// guarantee.
	t := o.truth(h.space)
	for i := len(t.taken) - 1; i >= 0 && t.taken[i].at > op.checked; i-- {
		if k := t.taken[i]; k.session != h.holder.Session && k.r.Contains(op.key) && !o.nemesis.beyond {
			o.Violated(I3Held, "Held of %s is true for %v, but session %s has served %v since the check", h.label, op.lease, k.session.Short(), k.r)
			return
		}
	}
}

// checkRequestedLeases checks that an owner's request has all leases that a check could still succeed on: the
// leader grants the others to other owners.
func (o *oracle) checkRequestedLeases(h *ownerHost, r *protocol.LeaseRequest) {
	o.Checks[I1Exclusive]++
	if h.now() >= h.view.Until {
		return
	}
	if missing := protocol.Missing(h.view.Leases, r.Leases); len(missing) > 0 {
		o.Violated(I1Exclusive, "the request of %s lacks %v, while its checks succeed", h.label, missing[0])
	}
}
