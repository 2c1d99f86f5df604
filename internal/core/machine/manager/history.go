package manager

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// A gapStage says what is still to be done so that the table goes on after a gap.
type gapStage uint8

const (
	gapNone   gapStage = iota // nothing: the store has lost no history, or the gap is stored
	gapWaits                  // the gap is stored at decideAt
	gapUrgent                 // the gap is stored at once, before any owner is answered: only we know that history was lost
)

// history is whether the store may have lost changes, and what follows (see restored.go). base is 0 exactly
// if there is no gap to store.
type history struct {
	found ending       // what the store had when we took over
	since mono.Instant // when that was
	// decideAt is when the gap is stored for good: no lease that the table does not know of is valid any more.
	decideAt mono.Instant
	gap      gapStage
	base     uint64 // where the table goes on after the gap
	proven   bool   // history was lost
	marked   bool   // the table has a gap that is to be widened
}

// An ending is where a log ends, and the newest generation that was given out by then.
type ending struct {
	lsn        leasehold.LSN
	generation leasehold.Generation
}

// doubted reports whether the table may have lost history, and the gap is not stored yet.
func (h *history) doubted() bool { return h.gap != gapNone }

// undecided reports whether nothing may be concluded yet from what owners claim.
func (h *history) undecided() bool { return h.doubted() && !h.proven }

// defers reports whether a peer that claims suspended leases is to be answered later.
func (h *history) defers(now mono.Instant, p *peer) bool {
	return p.claims.resumable() && h.undecided() && now < h.decideAt
}

// credible returns what a peer says about moves, as far as it may be relied on. In a history
// that was lost, the state may have been lost that is said to have gone elsewhere, or have
// changed there. So of leases from before our term only moves count that we have ordered.
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

// forfeited reports whether the leases of a silent owner are of no use to it: history was lost,
// and it was not heard since. It could not resume them, and a successor would not know that.
func (h *history) forfeited(now mono.Instant, p *peer) bool {
	return h.proven && p != nil && p.acks.echo == 0 && now >= p.renewal.until
}

// recallUpTo recalls the leases that a peer had before our term, up to a generation.
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
