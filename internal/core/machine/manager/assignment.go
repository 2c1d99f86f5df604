package manager

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/partition"
)

// An assignment is the result of the policy, and the schedule of its next run. The leader makes the table match
// desired: a range that differs is moved, or recalled and granted.
type assignment struct {
	current partition.Assignment
	desired *keyrange.Map[*seat] // current, by seat; nil means no owner
	// amended: desired differs from current, because a move failed or an operator ordered one.
	amended bool
	// reasons is why desired has each range where it is, and occasion why the policy runs next. Both are only
	// displayed.
	reasons  *keyrange.Map[table.Reason]
	occasion table.Reason

	// replan: members have changed since desired was computed.
	replan bool
	// replanAt is the earliest time of the next policy run.
	replanAt mono.Instant
	// gatherUntil delays the next policy run after a join, so that it covers further joins; 0 means no delay.
	gatherUntil mono.Instant
	// drawnAt is the last policy run because of a membership change.
	drawnAt mono.Instant
	churn   churn // policy runs because of loads

	// rescan: the table has to be compared with desired.
	rescan bool
	// rescanPending: a rescan is required when the current batch or move ends, for the rest of a move.
	rescanPending bool
	// rescanAt is the time of the next rescan.
	rescanAt mono.Instant
}

// lostMember runs the policy without delay: keys have no owner, or must move away from one.
func (pl *assignment) lostMember(why table.Reason) {
	pl.replan, pl.occasion = true, why
	pl.gatherUntil = 0
}

// amend copies desired to current if it was changed without a policy run.
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

// rescanIfPending schedules a rescan if one is pending.
func (pl *assignment) rescanIfPending() {
	pl.rescan = pl.rescan || pl.rescanPending
	pl.rescanPending = false
}

// plannedFor reports whether the plan assigns all of a range to p.
func (pl *assignment) plannedFor(p *peer, r leasehold.Range) bool {
	for _, s := range pl.desired.Within(r) {
		if s != p.seat {
			return false
		}
	}
	return true
}

// planned reports whether the plan assigns to p the leases that it holds under a generation.
func (pl *assignment) planned(p *peer, g leasehold.Generation) bool {
	for _, l := range p.held.leases {
		if l.Generation == g && !pl.plannedFor(p, l.Range) {
			return false
		}
	}
	return true
}

// keepsAllAsPlanned reports whether the plan assigns to p all leases that it holds.
func (pl *assignment) keepsAllAsPlanned(p *peer) bool {
	return !slices.ContainsFunc(p.held.leases, func(l leasehold.Lease) bool { return !pl.plannedFor(p, l.Range) })
}

// stillWanted reports whether the plan assigns the range to the target, and the source holds it.
func (pl *assignment) stillWanted(r leasehold.Range, from *peer, to *seat) bool {
	for _, s := range pl.desired.Within(r) {
		if s != to {
			return false
		}
	}
	return from.held.covers(r)
}

// recordReasons stores the reason for each range whose planned owner differs from the plan before.
func (pl *assignment) recordReasons(before *keyrange.Map[*seat], why table.Reason) {
	for r, pair := range keyrange.Diff(before, pl.desired) {
		pl.reasons.Set(r, reasonFor(pair[0], why))
	}
	if pl.reasons.Len() <= 2*pl.desired.Len() {
		return
	}
	var b keyrange.Builder[table.Reason] // drops boundaries of ranges that no longer exist
	for r := range pl.desired.All() {
		_, reason := pl.reasons.At(r.Start)
		b.Append(r.Start, reason)
	}
	pl.reasons = b.Map()
}

// succeeded replaces the reasons for the ranges of a seat, which were for its previous session.
func (pl *assignment) succeeded(s *seat) {
	for r, planned := range pl.desired.All() {
		if planned == s {
			pl.reasons.Set(r, table.Joined)
		}
	}
}

// reason returns why a range goes from one owner to another.
func (pl *assignment) reason(r leasehold.Range, from, to *table.Holder) table.Reason {
	if from.Session == to.Session {
		return table.Joint
	}
	_, reason := pl.reasons.At(r.Start)
	return reason
}

// needsMessage reports whether a message to p would contain anything but renewals.
func (pl *assignment) needsMessage(p *peer) bool { return p.moves.orders || !pl.keepsAsIs(p) }

// keepsAsIs reports whether p keeps exactly the leases that it has, and has confirmed them. If not, p answers the
// next message at once.
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

// want adds a move from p to the backlog, unless it is in progress.
func (pl *assignment) want(p *peer, r leasehold.Range, to *seat) {
	if !p.moves.moving(r) {
		p.moves.want(r, to)
		return
	}
	if !slices.ContainsFunc(p.moves.out, func(mv *move) bool { return mv.Covers(r) }) {
		pl.rescanPending = true // the rest of the range follows later
	}
}
