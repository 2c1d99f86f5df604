package kv

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	storagev1 "github.com/leasehold-dev/leasehold/proto/leasehold/storage/v1"
	"google.golang.org/protobuf/proto"
)

// Record implements [store.Store].
func (s *Store) Record(ctx context.Context, fresh bool) (storage.Record, error) {
	const op = "read leader record"
	ctx, leave, err := s.enter(ctx, op)
	if err != nil {
		return storage.Record{}, err
	}
	defer leave()
	got := make([]Entry, 1)
	if fresh {
		got, err = s.db.View().Get(ctx, recordKey)
	} else {
		got[0], err = s.db.Peek(ctx, recordKey)
	}
	if err != nil {
		return storage.Record{}, failed(op, "", err)
	}
	return decodeRecord(got[0])
}

// Swap implements [store.Store]. A renewal is one transaction. A change of the term is two; the first one
// reads the stored term.
func (s *Store) Swap(ctx context.Context, prev storage.Version, next storage.Record) (storage.Version, storage.Outcome, error) {
	const op = "swap leader record"
	ctx, leave, err := s.enter(ctx, op)
	if err != nil {
		return 0, storage.Unknown, err
	}
	defer leave()
	put, err := encodeRecord(next)
	if err != nil {
		return 0, storage.Conflict, err
	}
	unchanged := Guard{Key: recordKey, Revision: prev}
	renewal := Txn{Guards: []Guard{unchanged, termGuard(next.Term)}, Puts: []Entry{put}, Else: []string{recordKey, termKey}}
	res, err := s.db.Commit(ctx, renewal)
	switch {
	case err != nil:
		return 0, storage.Unknown, failed(op, "", err)
	case res.Held:
		return res.Revision, storage.Done, nil
	case res.Else[0].Revision != prev:
		return 0, storage.Conflict, nil
	}
	term, err := decodeTerm(res.Else[1])
	if err != nil {
		return 0, storage.Unknown, err
	}
	if next.Term < term {
		return 0, storage.Conflict, leasehold.Errorf(op, leasehold.ErrStale, string(next.Leader), "term %d is older than %d", next.Term, term)
	}
	failpoint.Here("store/before-takeover")
	takeover := Txn{Guards: []Guard{unchanged}, Puts: []Entry{put, {Key: termKey, Value: encodeTerm(next.Term)}}}
	res, err = s.db.Commit(ctx, takeover)
	outcome, err := res.outcome(op, err)
	return res.Revision, outcome, err
}

// outcome returns the outcome of a transaction without retries.
func (r Result) outcome(op string, err error) (storage.Outcome, error) {
	switch {
	case err != nil:
		return storage.Unknown, failed(op, "", err)
	case !r.Held:
		return storage.Conflict, nil
	}
	return storage.Done, nil
}

// Identity implements [store.Store].
func (s *Store) Identity() storage.Identity { return s.db.Identity() }

// WatchRecord implements [store.Store].
func (s *Store) WatchRecord(ctx context.Context, seen func(storage.Record)) {
	ctx, leave, err := s.enter(ctx, "watch leader record")
	if err != nil {
		return
	}
	defer leave()
	s.db.Watch(ctx, recordKey, func(e Entry) {
		if r, err := decodeRecord(e); err == nil {
			seen(r)
		}
	})
}

func encodeRecord(r storage.Record) (Entry, error) {
	return encode(recordKey, &storagev1.Record{
		Term:     uint64(r.Term),
		Leader:   string(r.Leader),
		Session:  r.Session[:],
		Beat:     r.Beat,
		Wait:     int64(r.Wait),
		Resigned: r.Resigned,
		At:       r.At,
		Floor:    r.Floor,
		Boot:     r.Boot,
		Uptime:   int64(r.Uptime),

		StoreCluster:   r.Store.Cluster,
		StoreDirectory: r.Store.Directory,
		LostBelow:      r.LostBelow,
	})
}

func decodeRecord(e Entry) (storage.Record, error) {
	if e.Revision == 0 {
		return storage.Record{}, nil
	}
	var m storagev1.Record
	if err := proto.Unmarshal(e.Value, &m); err != nil {
		return storage.Record{}, corrupt(e.Key, err)
	}
	r := storage.Record{
		Version:  e.Revision,
		Term:     leasehold.Term(m.GetTerm()),
		Leader:   storage.ManagerID(m.GetLeader()),
		Beat:     m.GetBeat(),
		Wait:     time.Duration(m.GetWait()),
		Resigned: m.GetResigned(),
		At:       m.GetAt(),
		Floor:    m.GetFloor(),
		Boot:     m.GetBoot(),
		Uptime:   time.Duration(m.GetUptime()),
		Store:    storage.Identity{Cluster: m.GetStoreCluster(), Directory: m.GetStoreDirectory()},

		LostBelow: m.GetLostBelow(),
	}
	copy(r.Session[:], m.GetSession())
	return r, nil
}

func encode(key string, m proto.Message) (Entry, error) {
	value, err := proto.Marshal(m)
	if err != nil { // text that is not UTF-8
		return Entry{}, leasehold.Errorf("write store", leasehold.ErrInvalid, key, "value cannot be encoded: %w", err)
	}
	return Entry{Key: key, Value: value}, nil
}
