package lookup

import (
	"context"
	"iter"

	"github.com/leasehold-dev/leasehold"
)

// A LossOption is an option of [Lookup.LossesSince].
type LossOption func(*lossOptions)

type lossOptions struct{ contact func(Contact) }

// WithContact calls f, between two losses, when contact is lost and when it is
// restored; and at the start, if contact is lost then. When f is called for a restored
// contact, every loss that happened before has been yielded. A loss of contact that ends
// while the reader handles a loss may be skipped. Config.OnContact is the equivalent for
// Config.OnLoss.
func WithContact(f func(Contact)) LossOption {
	return func(o *lossOptions) { o.contact = f }
}

// Losses yields the losses that happen after the call, in order, and waits for the
// next one. When a loss is yielded, [Lookup.Find] already uses the table that
// contains it. The error is nil in all pairs except the last, where it is the reason for the
// end: the cause of the context, or [leasehold.ErrClosed] if the Lookup was closed.
//
// Losses are in order of LSN. Several may have the same LSN: each has its own
// range, and the ranges between them were not lost. [Lookup.LossesSince] resumes from
// [leasehold.Loss.Resume] of the last handled loss: a reader
// that stops between losses of one LSN receives all of them again, and misses none.
// While contact is lost, losses may be missing; they are yielded when it is restored.
// [WithContact] reports both. With Config.ConservativeRecovery there are also
// losses with [leasehold.CauseContact], which are not in the table and have its LSN.
//
// No loss is omitted. If the log has dropped losses before a slow reader received them, the
// reader receives each range in which state was lost meanwhile: without owner and
// generation, with [leasehold.CauseUnknown], and once even for several losses.
// A range that was merged with a lost range into one lease counts as lost.
func (l *Lookup) Losses(ctx context.Context) iter.Seq2[leasehold.Loss, error] {
	return l.LossesSince(ctx, l.LSN())
}

// LossesSince is like [Lookup.Losses], but starts after an LSN: Resume of an
// earlier loss, or [Lookup.LSN] at a time when no state was missing. All
// losses up to and including that LSN count as handled.
// The LSN may be from another Lookup of the same namespace. Losses
// before this Lookup was opened are reported as to a slow reader.
//
// With Config.ConservativeRecovery, a resuming reader does not receive an earlier loss with
// [leasehold.CauseContact] again; it is repeated every Config.Stale while contact is lost.
func (l *Lookup) LossesSince(ctx context.Context, lsn leasehold.LSN, options ...LossOption) iter.Seq2[leasehold.Loss, error] {
	start := l.losses.since(lsn)
	o := lossOptions{contact: func(Contact) {}}
	for _, option := range options {
		option(&o)
	}
	return func(yield func(leasehold.Loss, error) bool) {
		for batch := range l.reports(ctx, start, o.contact) { // reports copies start: a sequence may be iterated twice
			for _, loss := range batch {
				if l.endCause(ctx) != nil {
					break // reports ends, too
				}
				if !yield(loss, nil) {
					return
				}
			}
		}
		yield(leasehold.Loss{}, l.endCause(ctx))
	}
}

// endCause returns the error that ends an iteration over losses, nil if it continues.
func (l *Lookup) endCause(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if l.ctx.Err() != nil {
		return leasehold.Errorf("losses", leasehold.ErrClosed, string(l.cfg.Namespace), "the lookup was closed")
	}
	return nil
}

// LostSince reports whether state of a key was lost after an LSN; see
// [Lookup.LossesSince]. It is for a caller that checks a key when it next uses it, instead of
// following all losses. Like [Lookup.At] it never waits. As for a slow reader, it may
// be true without a loss after the managers have lost their table.
func (l *Lookup) LostSince(key leasehold.Key, lsn leasehold.LSN) bool {
	t := l.current.Load().table
	_, e := t.At(key)
	return t.LostSince(e, lsn)
}

// reports yields losses from a cursor on, until the context ends or the
// Lookup is closed. When the contact changes, it calls contact after all earlier losses
// were yielded.
func (l *Lookup) reports(ctx context.Context, at cursor, contact func(Contact)) iter.Seq[[]leasehold.Loss] {
	return func(yield func([]leasehold.Loss) bool) {
		last := Contact{}
		for l.endCause(ctx) == nil {
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
