package lookup

import (
	"context"
	"iter"

	"github.com/leasehold-dev/leasehold"
)

// Losses yields the losses that happen from now on, in order. It waits for the
// next one and ends when the context does or the Lookup is closed. When a loss
// is yielded, [Lookup.Find] already knows what came after it.
//
// Losses come in order of LSN. Several may have the same LSN: each has its own
// range, and the ranges between them were not lost. [leasehold.Loss.Resume] of the
// last loss handled is the place from which [Lookup.LossesSince] resumes: a reader
// that stops between losses of one LSN gets all of them again, and misses none.
// Losses with [leasehold.CauseContact] are not in the table, and have its LSN.
//
// Nothing is left out silently. A reader that is so slow that losses were
// dropped which it has not seen is told about each range in which state was
// lost meanwhile: without owner and generation, with [leasehold.CauseUnknown],
// and only once if it was lost more than once.
func (l *Lookup) Losses(ctx context.Context) iter.Seq[leasehold.Loss] {
	return l.LossesSince(ctx, l.LSN())
}

// LossesSince is like [Lookup.Losses], but begins after an LSN: Resume of an
// earlier loss, or [Lookup.LSN] at a time when all state was known to be there. All
// losses up to and including that LSN count as handled.
// It does not matter which Lookup that was, if the namespace is the same. What
// happened before this Lookup was opened is told as to a reader that is too
// slow.
//
// That contact was lost is not told again to one who resumes; it is repeated
// soon enough while that lasts.
func (l *Lookup) LossesSince(ctx context.Context, lsn leasehold.LSN) iter.Seq[leasehold.Loss] {
	start := l.losses.since(lsn)
	return func(yield func(leasehold.Loss) bool) {
		at := start // a sequence can be gone through more than once
		for {
			batch, more := l.losses.read(&at)
			for _, loss := range batch {
				if ctx.Err() != nil || l.ctx.Err() != nil || !yield(loss) {
					return
				}
			}
			if len(batch) > 0 {
				continue
			}
			select {
			case <-more:
			case <-ctx.Done():
				return
			case <-l.ctx.Done():
				return
			}
		}
	}
}
