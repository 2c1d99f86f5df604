package sim

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
)

// checkManagerBounds is I8 at a leader: its data structures stay within their limits, whatever its peers
// send.
func (o *oracle) checkManagerBounds(m *managerHost, machine *manager.Machine) {
	o.Checks[I8Bounds]++
	// Twice the ranges that the policy needs, for adjacent leases of different generations; once more for
	// ranges that change their owner. The log exceeds its limit by at most one batch.
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
		// A new leader inherits sessions that the old one had expired and replaced without recording all of
		// it. Sessions that are kept past their deadlines take no seats, and may return.
		{"sessions", sizes.Sessions, 2*owners + sizes.Inherited},
		{"sessions with a recent request", sizes.Heard, 2*owners + sizes.Inherited},
		{"seats", sizes.Seats, 2 * owners},
		{"ranges", sizes.Ranges, ranges},
		{"planned ranges", sizes.Planned, planned},
		{"changes", sizes.Log, simLog + simBatch},
		{"freed leases", sizes.Freed, ranges},
		{"moves", sizes.Moves, simMoves * owners},
		{"queued moves", sizes.Backlog, ranges},
		{"deaths", sizes.Deaths, 5 * owners},
		{"actions", sizes.Actions, 64 + 4*ranges},
	} {
		if b.have > b.most {
			o.Violated(I8Bounds, "%s has %d %s, the maximum is %d", m.label, b.have, b.what, b.most)
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

func (o *oracle) leaderSizes() (all []manager.Sizes) {
	for _, in := range o.leaders() {
		all = append(all, in.Sizes())
	}
	return all
}

// unmerged reports whether a table has more than twice the ranges that the policy needs, or simSeams more where that is
// more.
func unmerged(s manager.Sizes) bool { return s.Ranges > s.Planned+max(s.Planned, simSeams) }

// checkSeams is I8 for the table: when all moves are complete, adjacent leases are merged.
func (o *oracle) checkSeams() {
	for _, in := range o.leaders() {
		o.Checks[I8Bounds]++
		if sizes := in.Sizes(); unmerged(sizes) {
			o.Violated(I8Bounds, "the table of %s has %d ranges, the policy needs %d", in.space.name, sizes.Ranges, sizes.Planned)
		}
	}
}

// checkOwnerBounds is I8 at an owner: it has at most as many leases as the table has ranges, and some whose
// changes are in flight.
func (o *oracle) checkOwnerBounds(h *ownerHost) {
	o.Checks[I8Bounds]++
	if n := o.truth(h.space).table.Len(); len(h.view.Leases) > n+inboxLimit {
		o.Violated(I8Bounds, "%s holds %d leases, the table has %d", h.label, len(h.view.Leases), n)
	}
}

// An owner sends at most maxRequests within requestWindow. A request per round trip would be twice as many. The
// most that was seen in tens of thousands of worlds is 64, when many small ranges move.
const (
	requestWindow = int64(2 * time.Second)
	maxRequests   = 200
)

// checkRequestRate is I8 for messages: an owner and a leader do not repeat an exchange without a pause.
func (o *oracle) checkRequestRate(h *ownerHost) {
	h.requests = slices.DeleteFunc(h.requests, func(at int64) bool { return at <= o.Now-requestWindow })
	h.requests = append(h.requests, o.Now)
	if n := len(h.requests); n > maxRequests {
		o.Violated(I8Bounds, "%s sends %d requests within %v", h.label, n, time.Duration(requestWindow))
	}
}
