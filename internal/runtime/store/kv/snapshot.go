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

// maxRemoved is the maximum number of changes that one snapshot removes from the log, so that no
// transaction blocks the database for long. Later snapshots remove the rest.
const maxRemoved = 1 << 17

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
		return leasehold.Errorf("check", leasehold.ErrInvalid, "", "the snapshot has lsn %d, and the log ends at %d", at, h.end)
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

// showSnapshot makes the written pieces of a snapshot visible and removes the pieces that it replaces.
// before is the head before they were written.
func (s *Store) showSnapshot(ctx context.Context, k keys, snap *storage.Snapshot, pieces int, before *head) error {
	h := before
	for range maxAttempts {
		next := *h
		next.snapshot, next.pieces = snap.Table.LSN(), pieces
		next.forgotten = s.removable(h, next.snapshot)
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
			return nil // rejected; the next snapshot removes the pieces
		}
		h = now
	}
	return leasehold.Errorf("commit", leasehold.ErrUnavailable, "", "%d attempts conflicted with batches", maxAttempts)
}

// removable returns the last LSN of the log to remove with a snapshot: all changes in the snapshot except
// for the newest, for the history.
func (s *Store) removable(h *head, snapshot leasehold.LSN) leasehold.LSN {
	old := h.end - min(h.end, s.history)
	return max(h.forgotten, min(old, snapshot, h.forgotten+maxRemoved))
}

// superfluous returns the keys of pieces without retained changes, for any size of pieces. It may miss a few.
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
