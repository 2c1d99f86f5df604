package manager

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/partition"
)

// An assignment is what the policy wants, and when it is asked again. The table is made to agree with desired:
// what differs is moved, or recalled and granted.
type assignment struct {
	current partition.Assignment
	desired *keyrange.Map[*seat] // current, by seat; nil means no owner
	// amended: desired differs from current, because a move has failed or an
	// operator has asked for one.
	amended bool
	// reasons is why desired is what it is, and occasion why the policy is to be asked
	// again. They are for people.
	reasons  *keyrange.Map[table.Reason]
	occasion table.Reason

	// replan: members have changed since desired was worked out.
	replan bool
	// replanAt is not earlier than when the policy may be asked again.
	replanAt mono.Instant
	// gatherUntil is for how long those that join are waited for, in the hope
	// that more do; 0 if none is.
	gatherUntil mono.Instant
	// drawnAt is when the policy was last asked because of members.
	drawnAt mono.Instant
	churn   churn // when it is asked because of loads

	// rescan: the table has not been compared with desired yet.
	rescan bool
	// again: the rest of a move has to be looked at when something has ended.
	rescanPending bool
	// rescanAt is when to compare the table with the plan again.
	rescanAt mono.Instant
}

// lostMember makes the policy be asked at once: someone's keys have no owner, or are to
// go elsewhere.
func (pl *assignment) lostMember(why table.Reason) {
	pl.replan, pl.occasion = true, why
	pl.gatherUntil = 0
}

// amend makes the assignment what is worked towards, where that was changed
// without asking the policy.
func (pl *assignment) amend() {
	if !pl.amended {
		return
	}
	pl.amended = false
	var a partition.Assignment
	for r, s := range pl.desired.All() {
		owner := leasehold.OwnerID("")
		if s != nil {
			owner = s.owner
		}
		a = a.Append(r.Start, owner)
	}
	pl.current = a
}

// rescanIfPending compares the table with the plan once more, if something was left
// for later.
func (pl *assignment) rescanIfPending() {
	pl.rescan = pl.rescan || pl.rescanPending
	pl.rescanPending = false
}

// plannedFor reports whether the plan has all of a range for p.
func (pl *assignment) plannedFor(p *peer, r leasehold.Range) bool {
	for _, s := range pl.desired.Within(r) {
		if s != p.seat {
			return false
		}
	}
	return true
}

// planned reports whether the plan has for p what it holds under a generation.
func (pl *assignment) planned(p *peer, g leasehold.Generation) bool {
	for _, l := range p.held.leases {
		if l.Generation == g && !pl.plannedFor(p, l.Range) {
			return false
		}
	}
	return true
}

// keepsAllAsPlanned reports whether the plan has for p all that it has.
func (pl *assignment) keepsAllAsPlanned(p *peer) bool {
	return !slices.ContainsFunc(p.held.leases, func(l leasehold.Lease) bool { return !pl.plannedFor(p, l.Range) })
}

// stillWanted reports whether the plan has the range for the target, and the
// source holds it.
func (pl *assignment) stillWanted(r leasehold.Range, from *peer, to *seat) bool {
	for _, s := range pl.desired.Within(r) {
		if s != to {
			return false
		}
	}
	return from.held.covers(r)
}

// recordReasons notes why a plan gives ranges to others than the one before it.
func (pl *assignment) recordReasons(before *keyrange.Map[*seat], why table.Reason) {
	for r, pair := range keyrange.Diff(before, pl.desired) {
		pl.reasons.Set(r, reasonFor(pair[0], why))
	}
	if pl.reasons.Len() <= 2*pl.desired.Len() {
		return
	}
	var b keyrange.Builder[table.Reason] // where ranges were that are no more, reasons may still change
	for r := range pl.desired.All() {
		_, reason := pl.reasons.At(r.Start)
		b.Append(r.Start, reason)
	}
	pl.reasons = b.Map()
}

// reason is why a range goes from one owner to another.
func (pl *assignment) reason(r leasehold.Range, from, to *table.Holder) table.Reason {
	if from.Session == to.Session {
		return table.Joint
	}
	_, reason := pl.reasons.At(r.Start)
	return reason
}

// needsMessage reports whether there is anything in what we would tell p but renewals.
func (pl *assignment) needsMessage(p *peer) bool { return p.moves.orders || !pl.keepsAsIs(p) }

// keepsAsIs reports whether p is to keep the leases that it has, all of them
// and no others, and knows it. If not, it will say at once what it has then.
func (pl *assignment) keepsAsIs(p *peer) bool {
	if !p.held.plain {
		p.held.plain = len(p.held.fresh) == 0 && pl.keepsAll(p)
	}
	return p.held.plain
}

// keepsAll reports whether the plan leaves p all its leases.
func (pl *assignment) keepsAll(p *peer) bool {
	for _, l := range p.held.leases {
		r, s := pl.desired.At(l.Range.Start)
		if s == p.seat && r.Covers(l.Range) {
			continue
		}
		for _, s := range pl.desired.Within(l.Range) {
			if !p.stays(s) {
				return false
			}
		}
	}
	return len(p.held.recalled) == 0
}

// want adds what p is to send, unless that is under way.
func (pl *assignment) want(p *peer, r leasehold.Range, to *seat) {
	if !p.moves.moving(r) {
		p.moves.want(r, to)
		return
	}
	if !slices.ContainsFunc(p.moves.out, func(mv *move) bool { return mv.Covers(r) }) {
		pl.rescanPending = true // the rest of it is for later
	}
}
