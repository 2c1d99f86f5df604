package kv

import (
	"context"
	"errors"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/catalogwire"
	storagev1 "github.com/leasehold-dev/leasehold/proto/leasehold/storage/v1"
	"google.golang.org/protobuf/proto"
)

// Catalog implements [store.Store].
func (s *Store) Catalog(ctx context.Context) (*storage.Catalog, error) {
	const op = "read catalog"
	ctx, leave, err := s.enter(ctx, op)
	if err != nil {
		return nil, err
	}
	defer leave()
	got, err := s.db.View().Get(ctx, termKey, catalogKey)
	if err != nil {
		return nil, failed(op, "", err)
	}
	c, err := decodeCatalog(got[1])
	if err != nil {
		return nil, err
	}
	c.Term, err = decodeTerm(got[0])
	return c, err
}

// SaveCatalog implements [store.Store]. A catalog of more than a megabyte is
// refused, for good: it comes as a conflict with an error of kind Limit. The
// history of namespaces that it no longer has is removed.
func (s *Store) SaveCatalog(ctx context.Context, next *storage.Catalog) (storage.Outcome, error) {
	const op = "write catalog"
	ctx, leave, err := s.enter(ctx, op)
	if err != nil {
		return storage.Unknown, err
	}
	defer leave()
	put, err := encodeCatalog(next)
	if err != nil {
		return storage.Conflict, err
	}
	if n := len(put.Value); n > maxCatalog {
		return storage.Conflict, leasehold.Errorf(op, leasehold.ErrLimit, "",
			"%d namespaces take %d bytes, at most %d can be stored: use fewer static slots", len(next.Namespaces), n, maxCatalog)
	}
	before, err := s.retireDeleted(ctx, next)
	if err != nil {
		return storage.Unknown, failed(op, "", err)
	}
	res, err := s.db.Commit(ctx, Txn{
		Guards: []Guard{termGuard(next.Term), {Key: catalogKey, Revision: next.Version}},
		Puts:   []Entry{put},
		Grows:  live(next) > live(before), // to delete some is what makes room
	})
	return res.outcome(op, err)
}

func live(c *storage.Catalog) (n int) {
	for i := range c.Namespaces {
		if !c.Namespaces[i].Deleted {
			n++
		}
	}
	return n
}

func encodeCatalog(c *storage.Catalog) (Entry, error) {
	return encode(catalogKey, catalogwire.FromCatalog(c))
}

func decodeCatalog(e Entry) (*storage.Catalog, error) {
	var m storagev1.Catalog
	if err := proto.Unmarshal(e.Value, &m); err != nil {
		return nil, corrupt(e.Key, err)
	}
	c := catalogwire.ToCatalog(&m)
	c.Version = e.Revision
	return c, nil
}

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
