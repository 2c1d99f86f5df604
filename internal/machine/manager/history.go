package manager

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/mono"
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
