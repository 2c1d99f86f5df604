package kv

import (
	"context"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	storagev1 "github.com/leasehold-dev/leasehold/proto/leasehold/storage/v1"
	"google.golang.org/protobuf/proto"
)

// A head is what is visible of a namespace, at a revision. It is immutable.
type head struct {
	revision  Revision
	end       leasehold.LSN // the last change
	snapshot  leasehold.LSN // the newest snapshot; 0 if there is none
	pieces    int           // of the snapshot
	forgotten leasehold.LSN // no change up to this one is kept
	base      leasehold.LSN // the last table that took the place of the log; 0 if none did
	earlier   stretch       // what is kept of the log before that
	// unfinished: another is to take its place before anything else is written.
	unfinished bool
}

// A stretch is the changes of a log behind after, up to and with end.
type stretch struct{ after, end leasehold.LSN }

func (h *head) guard(k keys) Guard { return Guard{Key: k.head(), Revision: h.revision} }

// at returns the head as it is once it was written at a revision.
func (h *head) at(r Revision) *head {
	next := *h
	next.revision = r
	return &next
}

func (h *head) encode(k keys) Entry {
	m := &storagev1.Head{
		End: uint64(h.end), Snapshot: uint64(h.snapshot), Pieces: uint32(h.pieces), Forgotten: uint64(h.forgotten),
		Base: uint64(h.base), EarlierAfter: uint64(h.earlier.after), EarlierEnd: uint64(h.earlier.end), Unfinished: h.unfinished,
	}
	value, err := proto.Marshal(m)
	if err != nil {
		panic(err) // they are numbers
	}
	return Entry{Key: k.head(), Value: value}
}

func decodeHead(e Entry) (*head, error) {
	var m storagev1.Head
	if err := proto.Unmarshal(e.Value, &m); err != nil {
		return nil, corrupt(e.Key, err)
	}
	return &head{
		revision: e.Revision, end: leasehold.LSN(m.GetEnd()), snapshot: leasehold.LSN(m.GetSnapshot()),
		pieces: int(m.GetPieces()), forgotten: leasehold.LSN(m.GetForgotten()),
		base: leasehold.LSN(m.GetBase()), earlier: stretch{leasehold.LSN(m.GetEarlierAfter()), leasehold.LSN(m.GetEarlierEnd())},
		unfinished: m.GetUnfinished(),
	}, nil
}

func readHead(ctx context.Context, v View, k keys) (leasehold.Term, *head, error) {
	got, err := v.Get(ctx, termKey, k.head())
	if err != nil {
		return 0, nil, err
	}
	return decodeTermAndHead(got)
}

// decodeTermAndHead reads what a transaction with Else{termKey, k.head()} has
// read.
func decodeTermAndHead(got []Entry) (leasehold.Term, *head, error) {
	term, err := decodeTerm(got[0])
	if err != nil {
		return 0, nil, err
	}
	h, err := decodeHead(got[1])
	return term, h, err
}

// End implements [store.Store].
func (s *Store) End(ctx context.Context, ns leasehold.Namespace) (storage.End, error) {
	return read(ctx, s, "read end of log", ns, func(ctx context.Context, v View, k keys) (storage.End, error) {
		term, h, err := readHead(ctx, v, k)
		if err != nil {
			return storage.End{}, err
		}
		s.seen(ns, h)
		return storage.End{Term: term, LSN: h.end}, nil
	})
}
