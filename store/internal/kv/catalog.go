package kv

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/mono"
	"github.com/leasehold-dev/leasehold/internal/storage"
	storagev1 "github.com/leasehold-dev/leasehold/proto/leasehold/storage/v1"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
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
		return storage.Conflict, leasehold.Errorf(op, leasehold.Limit, "",
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
	m := &storagev1.Catalog{Namespaces: make([]*storagev1.Namespace, len(c.Namespaces))}
	for i := range c.Namespaces {
		n := &c.Namespaces[i]
		row := &storagev1.Namespace{
			Name:         string(n.Name),
			Timing:       &leaseholdv1.Timing{Lease: int64(n.Lease), Renew: int64(n.Renew), Drift: float64(n.Drift)},
			Policy:       n.Policy,
			VirtualNodes: uint32(n.VirtualNodes),
			MaxOwners:    uint32(n.MaxOwners),
			Promised:     int64(n.Promised),
			Deleted:      n.Deleted,
			Churn:        n.Churn,
			Rebalance:    int64(n.Rebalance),
			Moves:        uint32(n.Moves),
			MoveTimeout:  int64(n.MoveTimeout),
		}
		for _, slot := range n.Static {
			row.Static = append(row.Static, &storagev1.StaticSlot{Start: uint64(slot.Start), Owner: string(slot.Owner)})
		}
		m.Namespaces[i] = row
	}
	return encode(catalogKey, m)
}

func decodeCatalog(e Entry) (*storage.Catalog, error) {
	var m storagev1.Catalog
	if err := proto.Unmarshal(e.Value, &m); err != nil {
		return nil, corrupt(e.Key, err)
	}
	c := &storage.Catalog{Version: e.Revision}
	for _, row := range m.GetNamespaces() {
		n := storage.Namespace{
			Name:         leasehold.Namespace(row.GetName()),
			Lease:        time.Duration(row.GetTiming().GetLease()),
			Renew:        time.Duration(row.GetTiming().GetRenew()),
			Drift:        mono.Drift(row.GetTiming().GetDrift()),
			Policy:       row.GetPolicy(),
			VirtualNodes: int(row.GetVirtualNodes()),
			MaxOwners:    int(row.GetMaxOwners()),
			Promised:     time.Duration(row.GetPromised()),
			Deleted:      row.GetDeleted(),
			Churn:        row.GetChurn(),
			Rebalance:    time.Duration(row.GetRebalance()),
			Moves:        int(row.GetMoves()),
			MoveTimeout:  time.Duration(row.GetMoveTimeout()),
		}
		for _, slot := range row.GetStatic() {
			n.Static = append(n.Static, storage.StaticSlot{Start: leasehold.Key(slot.GetStart()), Owner: leasehold.OwnerID(slot.GetOwner())})
		}
		c.Namespaces = append(c.Namespaces, n)
	}
	return c, nil
}
