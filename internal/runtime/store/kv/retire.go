package kv

import (
	"context"
	"errors"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// retireDeleted retires the namespaces that were deleted and are no longer in
// the catalog that is about to be written. It returns the catalog before.
//
// It comes before the write, so that it is done again if the process dies in
// between. Should the write be refused, nothing but history is lost of a
// namespace whose end was decided.
func (s *Store) retireDeleted(ctx context.Context, next *storage.Catalog) (*storage.Catalog, error) {
	got, err := s.db.View().Get(ctx, catalogKey)
	if err != nil {
		return nil, err
	}
	before, err := decodeCatalog(got[0])
	if err != nil || before.Version != next.Version {
		return before, err // the write finds out
	}
	for i := range before.Namespaces {
		if n := &before.Namespaces[i]; n.Deleted && next.Entry(n.Name) == nil {
			if err := s.retire(ctx, n.Name, next.Term); err != nil {
				return nil, err
			}
		}
	}
	return before, nil
}

// retire removes all that is stored about a namespace but its head and its
// table, in which nobody holds anything any more. By those two a namespace of
// the same name, created later, goes on with numbers that were never used.
func (s *Store) retire(ctx context.Context, ns leasehold.Namespace, term leasehold.Term) error {
	k, err := keysOf(ns)
	if err != nil {
		return err
	}
	for range maxAttempts {
		done, err := s.tryRetire(ctx, k, ns, term)
		if done || err != nil && !errors.Is(err, ErrViewLost) {
			return err
		}
	}
	return leasehold.Errorf("retire", leasehold.ErrUnavailable, string(ns), "other writes came between %d times", maxAttempts)
}

// tryRetire reports whether there is nothing left to do.
func (s *Store) tryRetire(ctx context.Context, k keys, ns leasehold.Namespace, term leasehold.Term) (bool, error) {
	v := s.db.View()
	now, h, err := readHead(ctx, v, k)
	if err != nil || now != term || h.end == h.forgotten && h.earlier == (stretch{}) {
		return err == nil, err
	}
	state, err := load(ctx, v, k)
	if err != nil {
		return false, err
	}
	t, err := state.Replay()
	if err != nil {
		return false, err
	}
	pieces, err := cutTable(k, &storage.Snapshot{Namespace: ns, Term: term, Table: t}, s.piece)
	if err != nil {
		return false, err
	}
	for _, piece := range pieces {
		res, err := s.db.Commit(ctx, Txn{Guards: []Guard{termGuard(term)}, Puts: []Entry{piece}})
		if err != nil || !res.Held {
			return err == nil, err // another leads
		}
	}
	next := head{end: h.end, snapshot: h.end, pieces: len(pieces), forgotten: h.end, base: h.base}
	res, err := s.db.Commit(ctx, Txn{
		Guards:  []Guard{termGuard(term), h.guard(k)},
		Puts:    []Entry{next.encode(k)},
		Deletes: []Span{{k.log(0), k.logEnd()}, {k.snapshot(0), k.snapshot(h.end)}},
	})
	s.seen(ns, nil)
	return res.Held, err
}
