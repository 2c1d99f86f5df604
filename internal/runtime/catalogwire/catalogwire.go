// Package catalogwire converts the catalog of namespaces to and from protobuf, for stores and for messages
// between managers. Owners and lookups do not link it.
package catalogwire

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	storagev1 "github.com/leasehold-dev/leasehold/proto/leasehold/storage/v1"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// FromCatalog encodes a catalog except for its version and term.
func FromCatalog(c *storage.Catalog) *storagev1.Catalog {
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

			AfterGeneration: uint64(n.After),

			MinLoad:  n.MinLoad,
			LoadUnit: n.LoadUnit,
		}
		for _, slot := range n.Static {
			row.Static = append(row.Static, &storagev1.StaticSlot{Start: uint64(slot.Start), Owner: string(slot.Owner)})
		}
		m.Namespaces[i] = row
	}
	return m
}

// ToCatalog decodes a catalog of a manager, which validated it when it was encoded.
func ToCatalog(m *storagev1.Catalog) *storage.Catalog {
	c := &storage.Catalog{}
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
			After:        leasehold.Generation(row.GetAfterGeneration()),
			MinLoad:      row.GetMinLoad(),
			LoadUnit:     row.GetLoadUnit(),
		}
		for _, slot := range row.GetStatic() {
			n.Static = append(n.Static, storage.StaticSlot{Start: leasehold.Key(slot.GetStart()), Owner: leasehold.OwnerID(slot.GetOwner())})
		}
		c.Namespaces = append(c.Namespaces, n)
	}
	return c
}
