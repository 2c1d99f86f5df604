package kv

import (
	"context"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
)

// cutBase encodes the table that takes the place of a log as pieces of a snapshot.
func (s *Store) cutBase(k keys, b *storage.Batch) ([]Entry, error) {
	if b.Base.LSN() <= b.Prev || len(b.Changes) > 0 {
		return nil, leasehold.Errorf("check", leasehold.ErrInvalid, string(b.Namespace),
			"a table at lsn %d with %d changes cannot take the place of a log that ends at %d: want one above that, without changes",
			b.Base.LSN(), len(b.Changes), b.Prev)
	}
	return cutTable(k, &storage.Snapshot{Namespace: b.Namespace, Term: b.Term, Table: b.Base}, s.piece)
}

// replace puts the batch's table in the place of all that is stored on top of h: first its
// pieces, which nobody sees, and then the head, with which all that was there before goes,
// but for the changes since the last time, which people may want to read.
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
		{a.k.log(a.batch.Prev + 1), a.k.logEnd()}, // what an attempt to write more has left behind
		{a.k.snapshot(0), a.k.snapshot(at)}, {a.k.snapshotEnd(at), a.k.snapshotsEnd()},
	}
	if h.end != h.base { // otherwise there is nothing that is newer
		next.earlier = stretch{h.forgotten, h.end}
		deletes = append(deletes, Span{a.k.log(0), a.k.log(h.base + 1)})
	}
	res, err := a.commit(ctx, h, []Entry{next.encode(a.k)}, deletes...)
	return res, &next, err
}
