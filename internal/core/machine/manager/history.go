package manager

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// A gapStage is the remaining work until the table continues after a gap.
type gapStage uint8

const (
	gapNone   gapStage = iota // none: the store has lost no history, or the gap is stored
	gapWaits                  // the gap is stored at decideAt
	gapUrgent                 // the gap is stored at once, before any reply to an owner: only this leader has evidence that history was lost
)

// history is whether the store may have lost changes, and the consequences (see restored.go). base is 0 if and only
// if there is no gap to store.
type history struct {
	found ending       // end of the stored log at the takeover
	since mono.Instant // when the takeover was
	// decideAt is when the final gap is stored: every lease that the table lacks has expired.
	decideAt mono.Instant
	gap      gapStage
	base     uint64 // first LSN and generation after the gap
	proven   bool   // history was lost
	marked   bool   // the table has a gap that must be extended
}

// An ending is the end of a log, and the newest generation in it.
type ending struct {
	lsn        leasehold.LSN
	generation leasehold.Generation
}

// doubted reports whether the table may have lost history, and the gap is not stored yet.
func (h *history) doubted() bool { return h.gap != gapNone }

// undecided reports whether claims of owners must not be acted on yet.
func (h *history) undecided() bool { return h.doubted() && !h.proven }

// defers reports whether the reply to a peer with suspended leases must be deferred.
func (h *history) defers(now mono.Instant, p *peer) bool {
	return p.claims.resumable() && h.undecided() && now < h.decideAt
}

// credible returns the move reports of a peer that can be relied on. If history was lost, the moved state may have
// been lost or changed at the target since. So for leases from before this term, only moves that this leader
// ordered count.
func (h *history) credible(p *peer, moves []protocol.MoveReport) []protocol.MoveReport {
	if !h.proven {
		return moves
	}
	return slices.DeleteFunc(slices.Clone(moves), func(r protocol.MoveReport) bool {
		_, ours := p.moves.ended[r.Ticket]
		ours = ours || slices.ContainsFunc(p.moves.out, func(mv *move) bool { return mv.ticket == r.Ticket })
		return !ours && r.Newest <= h.found.generation
	})
}

// forfeited reports whether a silent owner's leases are useless to it: history was lost, and the owner has sent no
// request since. It could not resume them, and a successor would not have the evidence.
func (h *history) forfeited(now mono.Instant, p *peer) bool {
	return h.proven && p != nil && p.acks.echo == 0 && now >= p.renewal.until
}

// recallUpTo recalls the leases that a peer had before this term, up to a generation.
func (h *history) recallUpTo(p *peer, upTo leasehold.Generation) {
	for _, l := range p.held.leases {
		if l.Generation > min(upTo, h.found.generation) {
			continue
		}
		if p.held.recalled == nil {
			p.held.recalled = make(map[leasehold.Lease]bool)
		}
		p.held.recalled[l], p.held.plain = true, false
	}
}
