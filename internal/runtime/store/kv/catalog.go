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

// SaveCatalog implements [store.Store]. A catalog of more than a megabyte is a conflict with an error of
// kind Limit. SaveCatalog removes the history of namespaces that are no longer in the catalog.
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
		Grows:  live(next) > live(before), // deleting namespaces frees space
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

// retireDeleted retires the deleted namespaces that are not in the next catalog. It returns the current catalog.
//
// It runs before the write, so that a retry repeats it after a crash. If the write is rejected, only the
// history of deleted namespaces is lost.
func (s *Store) retireDeleted(ctx context.Context, next *storage.Catalog) (*storage.Catalog, error) {
	got, err := s.db.View().Get(ctx, catalogKey)
	if err != nil {
		return nil, err
	}
	before, err := decodeCatalog(got[0])
	if err != nil || before.Version != next.Version {
		return before, err // the write reports the conflict
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

// retire removes the stored state of a namespace except for its head and its empty table. From these a
// later namespace of the same name continues the LSNs and generations.
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
	return leasehold.Errorf("retire", leasehold.ErrUnavailable, string(ns), "%d attempts conflicted with other writes", maxAttempts)
}

// tryRetire makes one attempt, and reports whether retire is complete.
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
			return err == nil, err // another manager is the leader
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
