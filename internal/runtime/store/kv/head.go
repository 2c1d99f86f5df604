package kv

import (
	"context"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	storagev1 "github.com/leasehold-dev/leasehold/proto/leasehold/storage/v1"
	"google.golang.org/protobuf/proto"
)

// A head defines the visible state of a namespace at a revision. It is immutable.
type head struct {
	revision  Revision
	end       leasehold.LSN // LSN of the last change
	snapshot  leasehold.LSN // LSN of the newest snapshot; 0 if there is none
	pieces    int           // of the snapshot
	forgotten leasehold.LSN // changes up to this LSN are removed
	base      leasehold.LSN // LSN of the last table that replaced the log; 0 if none did
	earlier   stretch       // retained part of the log before base
	// unfinished: another table must replace this one before any other write.
	unfinished bool
}

// A stretch is the changes of a log after an LSN, up to and including end.
type stretch struct{ after, end leasehold.LSN }

func (h *head) guard(k keys) Guard { return Guard{Key: k.head(), Revision: h.revision} }

// at returns the head with the revision of its write.
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
		panic(err) // numbers can always be encoded
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

// decodeTermAndHead decodes the result of a transaction with Else{termKey, k.head()}.
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
