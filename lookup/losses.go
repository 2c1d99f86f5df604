package lookup

import (
	"context"
	"iter"

	"github.com/leasehold-dev/leasehold"
)

// A LossOption changes what [Lookup.LossesSince] does.
type LossOption func(*lossOptions)

type lossOptions struct{ contact func(Contact) }

// WithContact calls f, between two losses, when contact is lost and when it is
// restored; and at the beginning, if contact is lost then. When f is called for a restored
// contact, every loss that happened before has been yielded. A loss of contact that ends
// while the reader handles a loss may be skipped. Config.OnContact is the same for
// Config.OnLoss.
func WithContact(f func(Contact)) LossOption {
	return func(o *lossOptions) { o.contact = f }
}

// Losses yields the losses that happen from now on, in order. It waits for the
// next one. When a loss is yielded, [Lookup.Find] already uses the table that came
// after it. The error is nil in all pairs but the last, which says why the iteration
// ended: the cause of the context, or [leasehold.ErrClosed] if the Lookup was closed.
//
// Losses come in order of LSN. Several may have the same LSN: each has its own
// range, and the ranges between them were not lost. [leasehold.Loss.Resume] of the
// last loss handled is the place from which [Lookup.LossesSince] resumes: a reader
// that stops between losses of one LSN gets all of them again, and misses none.
// While contact is lost, losses may be missing, and come when it is restored:
// [WithContact] reports both. With Config.ConservativeRecovery there are also
// losses with [leasehold.CauseContact], which are not in the table and have its LSN.
//
// Nothing is left out silently. A reader so slow that losses were dropped which it
// has not seen gets each range in which state was lost meanwhile: without owner and
// generation, with [leasehold.CauseUnknown], and once if it was lost more than once.
// A range that has become one lease with a lost range counts as lost with it.
func (l *Lookup) Losses(ctx context.Context) iter.Seq2[leasehold.Loss, error] {
	return l.LossesSince(ctx, l.LSN())
}

// LossesSince is like [Lookup.Losses], but begins after an LSN: Resume of an
// earlier loss, or [Lookup.LSN] at a time when all state was known to be there. All
// losses up to and including that LSN count as handled.
// It does not matter which Lookup that was, if the namespace is the same. What
// happened before this Lookup was opened is reported as to a slow reader.
//
// With Config.ConservativeRecovery, that contact was lost is not reported again to a
// reader that resumes; it is repeated soon enough while that lasts.
func (l *Lookup) LossesSince(ctx context.Context, lsn leasehold.LSN, options ...LossOption) iter.Seq2[leasehold.Loss, error] {
	start := l.losses.since(lsn)
	o := lossOptions{contact: func(Contact) {}}
	for _, option := range options {
		option(&o)
	}
	return func(yield func(leasehold.Loss, error) bool) {
		for batch := range l.reports(ctx, start, o.contact) { // a sequence can be gone through more than once
			for _, loss := range batch {
				if err := l.ended(ctx); err != nil {
					break // and so does reports
				}
				if !yield(loss, nil) {
					return
				}
			}
		}
		yield(leasehold.Loss{}, l.ended(ctx))
	}
}

// ended returns why an iteration over losses ends: the context has ended, or the Lookup.
func (l *Lookup) ended(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if l.ctx.Err() != nil {
		return leasehold.Errorf("losses", leasehold.ErrClosed, string(l.cfg.Namespace), "the lookup was closed")
	}
	return nil
}

// LostSince reports whether state of a key was lost after an LSN, which is as for
// [Lookup.LossesSince]: for a caller that need not be told at once, and asks when it next has
// something to do with the key. Like [Lookup.At] it never waits. As for a slow reader, it may
// be true although nothing was lost, after the managers have lost their table.
func (l *Lookup) LostSince(key leasehold.Key, lsn leasehold.LSN) bool {
	t := l.current.Load().table
	_, e := t.At(key)
	return t.LostSince(e, lsn)
}

// reports yields losses from a cursor on as they come, until the context ends or the
// Lookup is closed. It calls contact when that has changed and all losses that came
// before were yielded.
func (l *Lookup) reports(ctx context.Context, at cursor, contact func(Contact)) iter.Seq[[]leasehold.Loss] {
	return func(yield func([]leasehold.Loss) bool) {
		last := Contact{}
		for l.ended(ctx) == nil {
			now := l.losses.contactNow()
			batch, more := l.losses.read(&at)
			switch {
			case len(batch) > 0:
				if !yield(batch) {
					return
				}
			case now.Lost != last.Lost:
				last = now
				contact(now)
			default:
				select {
				case <-more:
				case <-ctx.Done():
				case <-l.ctx.Done():
				}
			}
		}
	}
}
