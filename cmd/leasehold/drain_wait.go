package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// awaitDrain waits until the owner has nothing any more.
func (c *client) awaitDrain(ctx context.Context, d *drainDocument, before *leaseholdv1.OwnerStatus, o *orderOptions) error {
	begun := time.Now()
	w := &drainWaiter{c: c, document: d, before: before, mayLose: o.loseState}
	_, err := c.await(ctx, o.within, w.look)
	d.Seconds = time.Since(begun).Round(time.Millisecond).Seconds()
	if err == nil {
		return c.print(d, d.text)
	}
	if d.Outcome != "lost" {
		d.Outcome = "unfinished"
	}
	if c.json {
		if err := write(c.out, jsonText(d)); err != nil {
			return err
		}
	}
	goesOn := fmt.Sprintf("%s still has %s, %s of the keys. The drain goes on; see 'leasehold moves', or end it with 'leasehold drain %s --cancel'.",
		shown(d.Owner), counted(int(d.Leases), "lease"), percent(d.Share), shown(d.Owner))
	switch {
	case errors.Is(err, statusInterrupted):
		c.errs.say("%s\n", goesOn)
		return err
	case errors.Is(err, timeUp{}):
		return failed{fmt.Errorf("it was not done within %v\n%s", o.within, goesOn)}
	}
	return err
}

// A drainWaiter looks how far a drain is.
type drainWaiter struct {
	c        *client
	document *drainDocument
	before   *leaseholdv1.OwnerStatus
	mayLose  bool // nobody minds if state is lost
	sent     sentTally
	had      *rangesDocument // what the owner had when it was first looked at
}

// look says how far a drain is, and keeps it in the document.
func (w *drainWaiter) look(ctx context.Context, to admin) (sight, error) {
	if w.had == nil && !w.mayLose {
		had, err := listRanges(ctx, to, w.c.namespace, w.document.Owner)
		if err != nil {
			return sight{}, err
		}
		w.had = &had
	}
	owners, err := w.c.listOwners(ctx, to)
	if err != nil {
		return sight{}, err
	}
	d, now := w.document, ownerNamed(owners, w.document.Owner)
	if now == nil || !bytes.Equal(now.GetHolder().GetSession(), w.before.GetHolder().GetSession()) {
		return w.left(ctx, to, now != nil)
	}
	moves, err := to.ListMoves(ctx, &leaseholdv1.ListMovesRequest{Version: wire.Version, Namespace: w.c.namespace})
	if err != nil {
		return sight{}, err
	}
	var count int
	count, d.Sent = w.sent.add(moves.GetMoves(), func(m *leaseholdv1.MoveStatus) bool { return m.GetFrom() == d.Owner && m.GetTo() != d.Owner })
	d.Leases, d.Share = now.GetLeases(), now.GetShare()
	switch {
	case now.GetState() == leaseholdv1.OwnerState_OWNER_STATE_MEMBER && !now.GetDraining():
		return sight{}, failed{fmt.Errorf("%s is no longer drained: somebody has cancelled it, or a manager died before the owner heard of it\nLook with 'leasehold owners', and drain it again if that is meant", shown(d.Owner))}
	case now.GetDraining() && now.GetLeases() == 0:
		d.Outcome = "drained"
		return sight{done: true}, nil
	}
	return sight{
		share: 1 - now.GetShare()/max(w.before.GetShare(), now.GetShare(), 1e-18),
		text: fmt.Sprintf("%s has %s, %s of the keys; %s, %s sent",
			shown(d.Owner), counted(int(now.GetLeases()), "lease"), percent(now.GetShare()), counted(count, "move"), byteText(d.Sent)),
	}, nil
}

// left finds out what became of the keys of an owner whose process has ended. Of
// one that has died the leader first records that its leases have ended. Another
// process may have its name by now.
func (w *drainWaiter) left(ctx context.Context, to admin, another bool) (sight, error) {
	d := w.document
	if w.mayLose {
		d.Outcome = "left"
		return sight{done: true}, nil
	}
	now, err := listRanges(ctx, to, w.c.namespace, "")
	if err != nil {
		return sight{}, err
	}
	lost, still := w.had.since(now, d.Owner, another)
	switch {
	case still:
		return sight{text: shown(d.Owner) + " has left; its leases are about to end"}, nil
	case lost > 0:
		d.Outcome, d.Lost = "lost", lost
		return sight{}, failed{fmt.Errorf("%s left with %s: the state of up to %s of the keys is lost\nIts process ended before all of it had moved; 'leasehold history' says what became of a key",
			shown(d.Owner), counted(int(d.Leases), "lease"), percent(lost))}
	}
	d.Outcome, d.Leases, d.Share = "left", 0, 0
	return sight{done: true}, nil
}

// since returns the share of the key space, of these ranges, whose state was lost
// between two looks at the table, and whether the owner still has a lease of those:
// not a later one, if another process has its name. Both tables are sorted. Where
// ranges were joined meanwhile, it is at most the share.
func (d *rangesDocument) since(now rangesDocument, owner string, another bool) (lost float64, still bool) {
	j := 0
	for _, had := range d.Ranges {
		for j < len(now.Ranges) && now.Ranges[j].keys.Last() < had.keys.Start {
			j++
		}
		for _, r := range now.Ranges[j:] {
			part, overlaps := r.keys.Intersect(had.keys)
			if !overlaps {
				break
			}
			still = still || r.Owner == owner && (!another || r.Generation == had.Generation)
			if r.LostAt > d.LSN {
				lost += shareOf(part)
			}
		}
	}
	return lost, still
}
