package kv

import (
	"context"
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	storagev1 "github.com/leasehold-dev/leasehold/proto/leasehold/storage/v1"
	"google.golang.org/protobuf/proto"
)

// maxForget bounds how much of the log one snapshot removes, in changes, so
// that no single transaction keeps the database busy for long. What is left
// goes with the next.
const maxForget = 1 << 17

// SaveSnapshot implements [store.Store].
func (s *Store) SaveSnapshot(ctx context.Context, snap *storage.Snapshot) error {
	const op = "save snapshot"
	ctx, leave, err := s.enter(ctx, op)
	if err != nil {
		return err
	}
	defer leave()
	k, err := keysOf(snap.Namespace)
	if err != nil {
		return err
	}
	return failed(op, string(snap.Namespace), s.saveSnapshot(ctx, k, snap))
}

func (s *Store) saveSnapshot(ctx context.Context, k keys, snap *storage.Snapshot) error {
	term, h, err := readHead(ctx, s.db.View(), k)
	if err != nil {
		return err
	}
	at := snap.Table.LSN()
	if term != snap.Term || h.snapshot >= at {
		return nil
	}
	if at > h.end {
		return leasehold.Errorf("check", leasehold.ErrInvalid, "", "it is of lsn %d, and the log ends at %d", at, h.end)
	}
	pieces, err := cutTable(k, snap, s.piece)
	if err != nil {
		return err
	}
	for _, piece := range pieces {
		res, err := s.db.Commit(ctx, Txn{Guards: []Guard{termGuard(snap.Term)}, Puts: []Entry{piece}, Grows: true})
		if err != nil || !res.Held {
			return err
		}
	}
	failpoint.Here("store/snapshot-written")
	return s.showSnapshot(ctx, k, snap, len(pieces), h)
}

// showSnapshot makes a snapshot visible whose pieces were written while the
// head was before, and removes what it replaces.
func (s *Store) showSnapshot(ctx context.Context, k keys, snap *storage.Snapshot, pieces int, before *head) error {
	h := before
	for range maxAttempts {
		next := *h
		next.snapshot, next.pieces = snap.Table.LSN(), pieces
		next.forgotten = s.forget(h, next.snapshot)
		if next.forgotten > next.base {
			next.earlier = stretch{}
		}
		res, err := s.db.Commit(ctx, Txn{
			Guards:  []Guard{termGuard(snap.Term), h.guard(k)},
			Puts:    []Entry{next.encode(k)},
			Deletes: append(next.superfluous(k), Span{k.snapshot(0), k.snapshot(next.snapshot)}),
			Else:    []string{termKey, k.head()},
		})
		if err != nil {
			return err
		}
		if res.Held {
			s.seen(snap.Namespace, next.at(res.Revision))
			return nil
		}
		term, now, err := decodeTermAndHead(res.Else)
		if err != nil {
			return err
		}
		if term != snap.Term || now.snapshot != before.snapshot {
			return nil // refused; the pieces go with the next snapshot
		}
		h = now
	}
	return leasehold.Errorf("commit", leasehold.ErrUnavailable, "", "batches came between %d times", maxAttempts)
}

// forget returns up to where the log need not be kept with a snapshot: what is
// in the snapshot, but for the newest changes, which people may want to read.
func (s *Store) forget(h *head, snapshot leasehold.LSN) leasehold.LSN {
	old := h.end - min(h.end, s.history)
	return max(h.forgotten, min(old, snapshot, h.forgotten+maxForget))
}

// superfluous returns the keys of the pieces that have no change that is kept,
// whatever their size. A few more pieces than that may be superfluous.
func (h *head) superfluous(k keys) []Span {
	if h.forgotten < MaxPieceChanges || h.earlier != (stretch{}) {
		return nil
	}
	return []Span{{k.log(0), k.log(h.forgotten - MaxPieceChanges + 2)}}
}

func cutTable(k keys, snap *storage.Snapshot, piece int) ([]Entry, error) {
	data, err := proto.Marshal(wire.FromTable(snap.Table))
	if err != nil { // text that is not UTF-8
		return nil, leasehold.Errorf("encode", leasehold.ErrInvalid, "", "%w", err)
	}
	var pieces []Entry
	for part := range slices.Chunk(data, piece) {
		e, err := encode(k.piece(snap.Table.LSN(), len(pieces)), &storagev1.Piece{Data: part})
		if err != nil {
			return nil, err
		}
		pieces = append(pieces, e)
	}
	return pieces, nil
}
