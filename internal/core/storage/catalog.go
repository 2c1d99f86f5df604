package storage

import (
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// MaxNamespaces limits the size of a catalog, which is written as a whole.
const MaxNamespaces = 4096

// A Catalog is the configuration of all namespaces. It is immutable.
type Catalog struct {
	// Version numbers the writes of the catalog; 0 means that there was none.
	Version Version
	// Term is that of the leader record when the catalog was read, and the writer's term in a
	// write.
	Term       leasehold.Term
	Namespaces []Namespace // sorted by name
}

// A Namespace is the stored configuration of one namespace.
type Namespace struct {
	Name leasehold.Namespace

	// Lease duration, renewal interval, and the bound on the ratio of clock rates.
	Lease time.Duration
	Renew time.Duration
	Drift mono.Drift

	// Policy is the partitioning policy: see package partition. Empty, as in old catalogs, means
	// "consistent".
	Policy       string
	VirtualNodes int          // per owner, for policies with virtual nodes; 0: the default
	Static       []StaticSlot // for the static policy: sorted by start, from 0 on
	MaxOwners    int          // limit of connected owners; 0: the default

	// Churn is the share of all keys that may move in a minute for load balancing. Rebalance is the
	// interval at which the policy examines the loads. Moves is the number of concurrent moves
	// from, and to, an owner. MoveTimeout is how long a move may make no progress. 0: the default.
	Churn       float64
	Rebalance   time.Duration
	Moves       int
	MoveTimeout time.Duration

	// MinLoad is the mean load per owner, per second, from which on loads are balanced. LoadUnit is the unit of
	// loads, for display. 0 and "": the default.
	MinLoad  float64
	LoadUnit string

	// After is a lower bound of all generations of the namespace. It is set if the namespace
	// replaces one that was lost with its managers.
	After leasehold.Generation

	// Promised is the longest time, on any manager's clock, for which a lease granted under an
	// earlier configuration may still be valid. A new leader waits as long for the leases that it
	// finds. It is 0 if the wait of the present configuration is sufficient.
	Promised time.Duration

	// Deleted means that the namespace is not served any more. The entry remains until all leases
	// have expired and are vacated in the table. Without it a new namespace of the same name with
	// shorter leases would not wait for them.
	Deleted bool
}

// A StaticSlot assigns the keys from Start on to an owner, or to none if Owner is empty.
type StaticSlot struct {
	Start leasehold.Key
	Owner leasehold.OwnerID
}

// Find returns the namespace with this name, nil if there is none or it was deleted.
func (c *Catalog) Find(name leasehold.Namespace) *Namespace {
	if n := c.Entry(name); n != nil && !n.Deleted {
		return n
	}
	return nil
}

// Entry returns the entry with this name, deleted or not, nil if there is none.
func (c *Catalog) Entry(name leasehold.Namespace) *Namespace {
	if i, ok := c.search(name); ok {
		return &c.Namespaces[i]
	}
	return nil
}

// Configured returns the catalog with a namespace created or reconfigured. If there is an entry of
// its name, deleted or not, leases granted under that one may still be valid, and Promised includes
// them.
func (c *Catalog) Configured(n Namespace) *Catalog {
	n.Promised, n.Deleted = 0, false
	if before := c.Entry(n.Name); before != nil {
		n.Promised = before.Promising(n.Lease, n.Renew, n.Drift).Promised
		n.After = max(n.After, before.After) // otherwise generations might be assigned twice
	}
	return c.With(n)
}

// Deleted returns the catalog with a namespace deleted, nil if there is none.
func (c *Catalog) Deleted(name leasehold.Namespace) *Catalog {
	n := c.Find(name)
	if n == nil {
		return nil
	}
	deleted := *n
	deleted.Deleted = true
	return c.With(deleted)
}

// Settled returns the catalog after all leases of an earlier configuration have expired: with
// Promised cleared, or without the entry if it was deleted. It returns nil if the entry has
// changed.
func (c *Catalog) Settled(was Namespace) *Catalog {
	n := c.Entry(was.Name)
	if n == nil || !n.Equal(was) {
		return nil
	}
	if was.Deleted {
		return c.Without(was.Name)
	}
	was.Promised = 0
	return c.With(was)
}

// With returns the catalog with a namespace added or replaced.
func (c *Catalog) With(n Namespace) *Catalog {
	next := *c
	next.Namespaces = slices.Clone(c.Namespaces)
	if i, ok := c.search(n.Name); ok {
		next.Namespaces[i] = n
	} else {
		next.Namespaces = slices.Insert(next.Namespaces, i, n)
	}
	return &next
}

// Without returns the catalog without a namespace.
func (c *Catalog) Without(name leasehold.Namespace) *Catalog {
	next := *c
	next.Namespaces = slices.DeleteFunc(slices.Clone(c.Namespaces), func(n Namespace) bool { return n.Name == name })
	return &next
}

func (c *Catalog) search(name leasehold.Namespace) (int, bool) {
	return slices.BinarySearchFunc(c.Namespaces, name, func(n Namespace, name leasehold.Namespace) int {
		return strings.Compare(string(n.Name), string(name))
	})
}

// Equal reports whether two namespaces have the same configuration.
func (n Namespace) Equal(o Namespace) bool {
	return slices.Equal(n.Static, o.Static) && n.Name == o.Name && n.Lease == o.Lease && n.Renew == o.Renew && n.Drift == o.Drift &&
		n.Policy == o.Policy && n.VirtualNodes == o.VirtualNodes && n.MaxOwners == o.MaxOwners && n.Promised == o.Promised && n.Deleted == o.Deleted &&
		n.Churn == o.Churn && n.Rebalance == o.Rebalance && n.Moves == o.Moves && n.MoveTimeout == o.MoveTimeout && n.After == o.After &&
		n.MinLoad == o.MinLoad && n.LoadUnit == o.LoadUnit
}

// Promising returns the namespace with a new timing, and with Promised covering the leases granted
// under the old one.
func (n Namespace) Promising(lease, renew time.Duration, drift mono.Drift) Namespace {
	before := max(n.Drift.Stretch(n.Lease), n.Promised)
	n.Lease, n.Renew, n.Drift, n.Promised = lease, renew, drift, 0
	if before > drift.Stretch(lease) {
		n.Promised = before
	}
	return n
}
