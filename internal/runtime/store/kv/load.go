package kv

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	storagev1 "github.com/leasehold-dev/leasehold/proto/leasehold/storage/v1"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"google.golang.org/protobuf/proto"
)

// storedLimits limit the memory for damaged values.
var storedLimits = protocol.Limits{Leases: 1 << 20, Changes: MaxPieceChanges, Ranges: 1 << 24}

// Load implements [store.Store]. It reads the newest snapshot and the log after it, in pages.
func (s *Store) Load(ctx context.Context, ns leasehold.Namespace) (*storage.State, error) {
	return read(ctx, s, "load table", ns, load)
}

func load(ctx context.Context, v View, k keys) (*storage.State, error) {
	term, h, err := readHead(ctx, v, k)
	if err != nil {
		return nil, err
	}
	state := &storage.State{Term: term, Unfinished: h.unfinished}
	if h.snapshot > 0 {
		if state.Table, err = readTable(ctx, v, k, h); err != nil {
			return nil, err
		}
	}
	err = readLog(ctx, v, k, h.snapshot, h.end, func(_ time.Time, changes []table.Change) {
		state.Changes = append(state.Changes, changes...)
	})
	if err != nil {
		return nil, err
	}
	return state, nil
}

// readTable joins the pieces of the newest snapshot.
func readTable(ctx context.Context, v View, k keys, h *head) (*table.Table, error) {
	var data bytes.Buffer
	found := 0
	err := v.Scan(ctx, Span{k.snapshot(h.snapshot), k.snapshotEnd(h.snapshot)}, func(e Entry) error {
		if found == h.pieces {
			return nil // remains of a writer with another piece size
		}
		if want := k.piece(h.snapshot, found); e.Key != want {
			return corrupt(e.Key, fmt.Errorf("want %s next", want))
		}
		found++
		var piece storagev1.Piece
		if err := proto.Unmarshal(e.Value, &piece); err != nil {
			return corrupt(e.Key, err)
		}
		data.Write(piece.GetData())
		return nil
	})
	if err != nil {
		return nil, err
	}
	key := k.snapshot(h.snapshot)
	if found < h.pieces {
		return nil, corrupt(key, fmt.Errorf("%d of %d pieces found", found, h.pieces))
	}
	var m leaseholdv1.Table
	if err := proto.Unmarshal(data.Bytes(), &m); err != nil {
		return nil, corrupt(key, err)
	}
	t, err := wire.ToTable(&m, storedLimits)
	if err != nil {
		return nil, corrupt(key, err)
	}
	if t.LSN() != h.snapshot {
		return nil, corrupt(key, fmt.Errorf("it has lsn %d", t.LSN()))
	}
	return t, nil
}

// readLog calls each with the changes after an LSN, up to and including last, piece by piece. A missing change is an
// error.
func readLog(ctx context.Context, v View, k keys, after, last leasehold.LSN, each func(at time.Time, changes []table.Change)) error {
	if after >= last {
		return nil
	}
	// The first change may be the last of its piece.
	from := after + 2 - min(after+1, MaxPieceChanges)
	err := v.Scan(ctx, Span{k.log(from), k.log(last + 1)}, func(e Entry) error {
		at, changes, err := decodePiece(e)
		if err != nil || len(changes) == 0 || changes[len(changes)-1].LSN <= after {
			return err
		}
		if first := changes[0].LSN; first > after+1 {
			return corrupt(e.Key, fmt.Errorf("it starts with lsn %d, and %d is missing", first, after+1))
		}
		changes = changes[after+1-changes[0].LSN:]
		changes = changes[:min(leasehold.LSN(len(changes)), last-after)]
		after += leasehold.LSN(len(changes))
		each(at, changes)
		return nil
	})
	if err == nil && after < last {
		err = corrupt(k.log(after+1), fmt.Errorf("it is missing, and the log ends at %d", last))
	}
	return err
}

func decodePiece(e Entry) (time.Time, []table.Change, error) {
	var m storagev1.Batch
	if err := proto.Unmarshal(e.Value, &m); err != nil {
		return time.Time{}, nil, corrupt(e.Key, err)
	}
	changes, err := wire.ToChanges(m.GetChanges(), storedLimits)
	if err != nil {
		return time.Time{}, nil, corrupt(e.Key, err)
	}
	return m.GetAt().AsTime(), changes, nil
}

// History implements [store.Store]. It returns at most [DefaultHistory] changes per call.
func (s *Store) History(ctx context.Context, ns leasehold.Namespace, before leasehold.LSN, most int) ([]store.Past, error) {
	return read(ctx, s, "read history", ns, func(ctx context.Context, v View, k keys) ([]store.Past, error) {
		return history(ctx, v, k, before, most)
	})
}

func history(ctx context.Context, v View, k keys, before leasehold.LSN, most int) ([]store.Past, error) {
	_, h, err := readHead(ctx, v, k)
	if err != nil {
		return nil, err
	}
	var past []store.Past
	// Newest first: the log after the last replacement, then the retained part before it.
	for _, part := range []stretch{{h.forgotten, h.end}, h.earlier} {
		if before > 0 {
			part.end = min(part.end, before-1)
		}
		room := leasehold.LSN(max(0, min(most, DefaultHistory)-len(past)))
		part.after = max(part.after, part.end-min(part.end, room))
		read := len(past)
		err = readLog(ctx, v, k, part.after, part.end, func(at time.Time, changes []table.Change) {
			for i := range changes {
				past = append(past, store.Past{At: at, Change: changes[i]})
			}
		})
		if err != nil {
			return nil, err
		}
		slices.Reverse(past[read:])
	}
	return past, nil
}
