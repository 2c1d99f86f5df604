package kv

import (
	"context"

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
	switch {
	case err != nil:
		return storage.Unknown, failed(op, "", err)
	case !res.Held:
		return storage.Conflict, nil
	}
	return storage.Done, nil
}

// live is how many namespaces are served.
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
