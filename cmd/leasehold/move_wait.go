package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// comesToNothing is for how long a move may be neither done nor under way before
// it is taken to have failed: what is done is first written by the leader.
const comesToNothing = 3 * time.Second

// awaitMove waits until the owner has the range.
func (c *client) awaitMove(ctx context.Context, d *moveDocument, o *orderOptions) error {
	begun := time.Now()
	w := &moveWaiter{c: c, document: d, seen: begun}
	_, err := c.await(ctx, o.within, w.look)
	d.Seconds = time.Since(begun).Round(time.Millisecond).Seconds()
	if err == nil {
		d.Outcome = "moved"
		return c.print(d, func() string {
			return fmt.Sprintf("%s %v to %s in %s\n", good("moved"), d.keys, shown(d.Owner), seconds(d.Seconds))
		})
	}
	d.Outcome = "unfinished"
	if c.json {
		if err := write(c.out, jsonText(d)); err != nil {
			return err
		}
	}
	switch {
	case errors.Is(err, statusInterrupted):
		c.errs.say("%s\n", w.prospects())
		return err
	case errors.Is(err, timeUp{}):
		return failed{fmt.Errorf("it was not done within %v\n%s", o.within, w.prospects())}
	}
	return err
}

// A moveWaiter looks whether a range has moved.
type moveWaiter struct {
	c        *client
	document *moveDocument
	sent     sentTally
	underWay int       // moves, at the last look
	seen     time.Time // when state was last on its way, or might have been
}

// prospects says what becomes of a move that nobody waits for any more.
func (w *moveWaiter) prospects() string {
	if w.underWay == 0 {
		return "Nothing of it was on its way at the last look: see 'leasehold ranges' and 'leasehold moves'."
	}
	return "It goes on: see 'leasehold moves'."
}

func (w *moveWaiter) look(ctx context.Context, to admin) (sight, error) {
	s, err := w.lookAt(ctx, to)
	if elsewhere(wire.ToError(err)) {
		w.seen = time.Now() // nobody knows; and a new leader has to find its feet
	}
	return s, err
}

func (w *moveWaiter) lookAt(ctx context.Context, to admin) (sight, error) {
	d := w.document
	has, err := listRanges(ctx, to, w.c.namespace, d.Owner)
	if err != nil {
		return sight{}, err
	}
	left, some := missing(d.keys, has.Ranges)
	if !some {
		return sight{done: true}, nil
	}
	answer, err := to.ListMoves(ctx, &leaseholdv1.ListMovesRequest{Version: wire.Version, Namespace: w.c.namespace})
	if err != nil {
		return sight{}, err
	}
	w.underWay, d.Sent = w.sent.add(answer.GetMoves(), func(m *leaseholdv1.MoveStatus) bool {
		keys := leasehold.Range{Start: leasehold.Key(m.GetStart()), Limit: leasehold.Key(m.GetLimit())}
		return m.GetTo() == d.Owner && m.GetFrom() != d.Owner && keys.Overlaps(d.keys)
	})
	all := len(answer.GetMoves()) >= int(answer.GetUnderWay()+answer.GetWaiting())
	switch {
	case w.underWay > 0 || !all: // it may be one of those that are not listed
		w.seen = time.Now()
	case time.Since(w.seen) > d.patience:
		return sight{}, failed{fmt.Errorf("%s of the keys were not moved: the move failed, or was overruled by the policy\n'leasehold history' says what became of them, and the logs of the managers and of the owners say why",
			percent(left))}
	}
	return sight{
		share: 1 - left/max(d.Plan.Share, left, 1e-18),
		text:  fmt.Sprintf("%s of the keys left; %s, %s sent", percent(left), counted(w.underWay, "move"), byteText(d.Sent)),
	}, nil
}

// missing is the share of the key space that is in keys and in none of the ranges,
// which are sorted, and whether there is any.
func missing(keys leasehold.Range, in []rangeDocument) (share float64, some bool) {
	share, some = shareOf(keys), true
	next := keys.Start // what comes before is there
	for _, r := range in {
		part, overlaps := r.keys.Intersect(keys)
		if !overlaps {
			continue
		}
		share -= shareOf(part)
		if some && part.Start == next {
			next = part.Limit
			some = part.Last() != keys.Last()
		}
	}
	return max(0, share), some
}
