package kv

import (
	"context"
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	storagev1 "github.com/leasehold-dev/leasehold/proto/leasehold/storage/v1"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Append implements [store.Store]. A batch of one piece takes one transaction of three operations, if this
// store has the head of the namespace.
func (s *Store) Append(ctx context.Context, b *storage.Batch) (storage.Outcome, error) {
	const op = "append to log"
	ctx, leave, err := s.enter(ctx, op)
	if err != nil {
		return storage.Unknown, err
	}
	defer leave()
	k, err := keysOf(b.Namespace)
	if err != nil {
		return storage.Conflict, err
	}
	a := appending{db: s.db, k: k, batch: b, grows: grows(b)}
	if b.Base != nil {
		a.pieces, err = s.cutBase(k, b)
	} else {
		a.pieces, err = s.cutBatch(k, b)
	}
	if err != nil {
		return storage.Conflict, err
	}
	outcome, h, err := a.run(ctx, s.lastSeen(b.Namespace))
	s.seen(b.Namespace, h)
	return outcome, failed(op, string(b.Namespace), err)
}

// cutBatch encodes a batch as pieces of the log. It depends only on the batch and the clock.
func (s *Store) cutBatch(k keys, b *storage.Batch) ([]Entry, error) {
	at := timestamppb.New(s.now())
	var pieces []Entry
	from := b.Prev
	for rest := b.Changes; len(rest) > 0; {
		n := fitting(rest, s.piece)
		e, err := encode(k.log(from+1), &storagev1.Batch{Term: uint64(b.Term), At: at, Changes: wire.FromChanges(from, rest[:n])})
		if err != nil {
			return nil, err
		}
		pieces = append(pieces, e)
		from, rest = from+leasehold.LSN(n), rest[n:]
	}
	return pieces, nil
}

// grows reports whether a batch has other changes than ends of leases. The database accepts ends of leases
// even if it is nearly full: there are at most as many as grants. A table that replaces a log frees space.
func grows(b *storage.Batch) bool {
	return slices.ContainsFunc(b.Changes, func(c table.Change) bool { return c.Kind != table.Vacated })
}

// fitting returns the number of changes that fit into a piece of a size, at least one.
func fitting(changes []table.Change, piece int) int {
	// Maximum sizes of a change and a holder without its strings.
	const changeSize, holderSize = 48, 100
	size := 0
	holders := make(map[*table.Holder]bool)
	for i := range changes {
		size += changeSize
		for _, h := range [...]*table.Holder{changes[i].Holder, changes[i].From} {
			if h != nil && !holders[h] {
				holders[h] = true
				size += holderSize + len(h.Owner) + len(h.Addr) + len(h.Process)
			}
		}
		if i > 0 && (size > piece || i == MaxPieceChanges) {
			return i
		}
	}
	return len(changes)
}

type appending struct {
	db     DB
	k      keys
	batch  *storage.Batch
	pieces []Entry
	grows  bool
}

// run retries until the batch is written or its guards cannot hold. h is the last known head. run returns
// the new head, nil if unknown.
func (a *appending) run(ctx context.Context, h *head) (storage.Outcome, *head, error) {
	if h == nil || h.end != a.batch.Prev { // the known head may be stale
		term, now, err := readHead(ctx, a.db.View(), a.k)
		if err != nil {
			return storage.Unknown, nil, err
		}
		if h = now; a.refused(term, h) {
			return storage.Conflict, h, nil
		}
	}
	for range maxAttempts {
		res, next, err := a.attempt(ctx, h)
		if err != nil {
			return storage.Unknown, nil, err
		}
		if res.Held {
			return storage.Done, next.at(res.Revision), nil
		}
		term, now, err := decodeTermAndHead(res.Else)
		if err != nil {
			return storage.Unknown, nil, err
		}
		if h = now; a.refused(term, h) {
			return storage.Conflict, h, nil
		}
	}
	return storage.Unknown, nil, leasehold.Errorf("commit", leasehold.ErrUnavailable, "", "%d attempts conflicted with other writes", maxAttempts)
}

func (a *appending) refused(term leasehold.Term, h *head) bool {
	return term != a.batch.Term || h.end != a.batch.Prev
}

// attempt writes the batch after h and returns the new head.
func (a *appending) attempt(ctx context.Context, h *head) (Result, *head, error) {
	next := *h
	next.end, next.unfinished = a.batch.Last(), a.batch.Unfinished
	if a.batch.Base != nil {
		return a.replace(ctx, h, next)
	}
	if len(a.pieces) <= 1 {
		// Delete the remains of an attempt in several pieces.
		leftovers := Span{a.k.log(a.batch.Prev + 2), a.k.logEnd()}
		res, err := a.commit(ctx, h, append(a.pieces[:len(a.pieces):len(a.pieces)], next.encode(a.k)), leftovers)
		return res, &next, err
	}
	res, err := a.commit(ctx, h, []Entry{h.encode(a.k)}, Span{a.k.log(a.batch.Prev + 1), a.k.logEnd()})
	if err != nil || !res.Held {
		return res, nil, err
	}
	h = h.at(res.Revision)
	last := len(a.pieces) - 1
	for _, piece := range a.pieces[:last] {
		if res, err = a.commit(ctx, h, []Entry{piece}); err != nil || !res.Held {
			return res, nil, err
		}
		failpoint.Here("store/piece-appended")
	}
	res, err = a.commit(ctx, h, []Entry{a.pieces[last], next.encode(a.k)})
	return res, &next, err
}

// commit writes entries if the term is that of the batch and the head is h.
func (a *appending) commit(ctx context.Context, h *head, puts []Entry, deletes ...Span) (Result, error) {
	if err := failpoint.Fail("store/before-append"); err != nil {
		return Result{}, err
	}
	res, err := a.db.Commit(ctx, Txn{
		Guards:  []Guard{termGuard(a.batch.Term), h.guard(a.k)},
		Puts:    puts,
		Deletes: deletes,
		Else:    []string{termKey, a.k.head()},
		Grows:   a.grows,
	})
	if err == nil {
		err = failpoint.Fail("store/appended")
	}
	return res, err
}

// cutBase encodes the table that replaces a log as pieces of a snapshot.
func (s *Store) cutBase(k keys, b *storage.Batch) ([]Entry, error) {
	if b.Base.LSN() <= b.Prev || len(b.Changes) > 0 {
		return nil, leasehold.Errorf("check", leasehold.ErrInvalid, string(b.Namespace),
			"a table at lsn %d with %d changes cannot replace a log that ends at %d: want a higher lsn and no changes",
			b.Base.LSN(), len(b.Changes), b.Prev)
	}
	return cutTable(k, &storage.Snapshot{Namespace: b.Namespace, Term: b.Term, Table: b.Base}, s.piece)
}

// replace replaces the stored state with the batch's table: it writes the pieces, which are not visible,
// then the new head, which makes them visible and deletes everything else except for the changes since the
// last replacement, for the history.
func (a *appending) replace(ctx context.Context, h *head, next head) (Result, *head, error) {
	for _, piece := range a.pieces {
		if res, err := a.commit(ctx, h, []Entry{piece}); err != nil || !res.Held {
			return res, nil, err
		}
		failpoint.Here("store/base-piece-written")
	}
	at := a.batch.Base.LSN()
	next.snapshot, next.pieces, next.forgotten = at, len(a.pieces), at
	next.base = at
	deletes := []Span{
		{a.k.log(a.batch.Prev + 1), a.k.logEnd()}, // remains of an unfinished batch
		{a.k.snapshot(0), a.k.snapshot(at)}, {a.k.snapshotEnd(at), a.k.snapshotsEnd()},
	}
	if h.end != h.base { // there are newer changes
		next.earlier = stretch{h.forgotten, h.end}
		deletes = append(deletes, Span{a.k.log(0), a.k.log(h.base + 1)})
	}
	res, err := a.commit(ctx, h, []Entry{next.encode(a.k)}, deletes...)
	return res, &next, err
}
