package sim

import (
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
)

// checkManagerBounds is I8 at a leader: nothing in it grows beyond what its
// configuration allows, whatever peers have done.
func (o *oracle) checkManagerBounds(m *managerHost, machine *manager.Machine) {
	o.Checks[I8Bounds]++
	// Twice as many ranges as the policy needs, for leases of different
	// generations side by side; once more for what changes hands; and what the
	// log keeps beyond its limit is at most one batch.
	vnodes := 0
	for _, s := range o.spaces {
		vnodes = max(vnodes, s.vnodes)
	}
	sizes, owners := machine.Sizes(), o.cfg.Owners+2
	planned := 2*(2*owners)*vnodes + 1 // weights go up to 2
	ranges := 3 * planned
	for _, b := range []struct {
		what       string
		have, most int
	}{
		// A new leader finds sessions in the table that the old one had given
		// up and replaced without having recorded all of it yet. Sessions that are
		// kept past their deadlines do not keep others out, and may return.
		{"sessions", sizes.Sessions, 2*owners + sizes.Inherited},
		{"sessions that speak", sizes.Heard, 2*owners + sizes.Inherited},
		{"seats", sizes.Seats, 2 * owners},
		{"ranges", sizes.Ranges, ranges},
		{"planned ranges", sizes.Planned, planned},
		{"changes", sizes.Log, simLog + simBatch},
		{"freed leases", sizes.Freed, ranges},
		{"moves", sizes.Moves, simMoves * owners},
		{"moves that wait", sizes.Backlog, ranges},
		{"actions", sizes.Actions, 64 + 4*ranges},
	} {
		if b.have > b.most {
			o.Violated(I8Bounds, "%s holds %d %s, at most %d are expected", m.label, b.have, b.what, b.most)
		}
	}
}

func (o *oracle) moving() bool {
	for _, in := range o.leaders() {
		if in.Sizes().Moves+in.Sizes().Backlog > 0 {
			return true
		}
	}
	return false
}

// checkSeams is I8 for the table: once everything is quiet it has at most twice
// the ranges that the policy needs, or a few more where that is few.
func (o *oracle) checkSeams() {
	for _, in := range o.leaders() {
		o.Checks[I8Bounds]++
		if sizes := in.Sizes(); sizes.Ranges > sizes.Planned+max(sizes.Planned, simSeams) {
			o.Violated(I8Bounds, "the table of %s has %d ranges, the policy needs %d", in.space.name, sizes.Ranges, sizes.Planned)
		}
	}
}

// checkOwnerBounds is I8 at an owner: it never holds more leases than the
// leader's table can have ranges.
func (o *oracle) checkOwnerBounds(h *ownerHost) {
	o.Checks[I8Bounds]++
	if n := o.truth(h.space).table.Len(); len(h.view.Leases) > n+inboxLimit {
		o.Violated(I8Bounds, "%s holds %d leases, the table has %d", h.label, len(h.view.Leases), n)
	}
}
