package storage

import (
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// MaxNamespaces bounds a catalog, which is written as a whole.
const MaxNamespaces = 4096

// A Catalog is the configuration of all namespaces. It is immutable.
type Catalog struct {
	// Version numbers the writes of the catalog; 0 means that there was none.
	Version Version
	// Term is the leader record's when the catalog was read, and the writer's
	// when it is written.
	Term       leasehold.Term
	Namespaces []Namespace // sorted by name
}

// A Namespace is what is stored about one namespace besides its table.
type Namespace struct {
	Name leasehold.Namespace

	// How long a lease lasts, how often it is renewed, and by how much clocks
	// may differ in rate.
	Lease time.Duration
	Renew time.Duration
	Drift mono.Drift

	// Policy names how keys are divided: see package partition. Empty, as a
	// catalog from before there was a choice may have it, is "consistent".
	Policy       string
	VirtualNodes int          // per owner, for policies that have them; 0: the default
	Static       []StaticSlot // for the static policy: sorted by start, from 0 on
	MaxOwners    int          // how many owners may be connected; 0: the default

	// Churn is the share of all keys that may change their owner in a minute for
	// the sake of balance; Rebalance is how often the policy looks at the loads;
	// Moves is how many ranges an owner sends, and takes in, at a time; and
	// MoveTimeout is how long one of them may make no progress. 0: the default.
	Churn       float64
	Rebalance   time.Duration
	Moves       int
	MoveTimeout time.Duration

	// After is a generation that all of the namespace's are newer than: it takes the
	// place of a namespace that was lost with its managers.
	After leasehold.Generation

	// Promised is how long an owner may still believe in a lease that it was
	// given under an earlier configuration, on any manager's clock. A new
	// leader waits as long for the leases that it finds. It is 0 once the
	// present configuration's own time is enough.
	Promised time.Duration

	// Deleted means that nobody is served any more. The entry stays until all
	// leases have run out and the table says so: were it gone at once, a
	// namespace of the same name with shorter leases would not wait for them.
	Deleted bool
}

// A StaticSlot gives the keys from Start on to an owner, or to nobody if it
// has no name.
type StaticSlot struct {
	Start leasehold.Key
	Owner leasehold.OwnerID
}

// Find returns the namespace with a name, nil if there is none or it was
// deleted.
func (c *Catalog) Find(name leasehold.Namespace) *Namespace {
	if n := c.Entry(name); n != nil && !n.Deleted {
		return n
	}
	return nil
}

// Entry returns the entry with a name, deleted or not, nil if there is none.
func (c *Catalog) Entry(name leasehold.Namespace) *Namespace {
	if i, ok := c.search(name); ok {
		return &c.Namespaces[i]
	}
	return nil
}

// Configured returns the catalog with a namespace created or configured anew.
// If there is an entry of its name, deleted or not, owners may still believe in
// leases that they were given under that one, and it promises to wait for them.
func (c *Catalog) Configured(n Namespace) *Catalog {
	n.Promised, n.Deleted = 0, false
	if before := c.Entry(n.Name); before != nil {
		n.Promised = before.Promising(n.Lease, n.Renew, n.Drift).Promised
		n.After = max(n.After, before.After) // else generations might be given twice
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

// Settled returns the catalog after the past of an entry is over: without what
// the entry promised, or without the entry if it was deleted. It returns nil if
// the entry is no longer as it was.
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

// Equal reports whether two namespaces are configured alike.
func (n Namespace) Equal(o Namespace) bool {
	return slices.Equal(n.Static, o.Static) && n.Name == o.Name && n.Lease == o.Lease && n.Renew == o.Renew && n.Drift == o.Drift &&
		n.Policy == o.Policy && n.VirtualNodes == o.VirtualNodes && n.MaxOwners == o.MaxOwners && n.Promised == o.Promised && n.Deleted == o.Deleted &&
		n.Churn == o.Churn && n.Rebalance == o.Rebalance && n.Moves == o.Moves && n.MoveTimeout == o.MoveTimeout && n.After == o.After
}

// Promising returns the namespace with another timing, and with the promise to
// wait for leases that were given under the one it has.
func (n Namespace) Promising(lease, renew time.Duration, drift mono.Drift) Namespace {
	before := max(n.Drift.Stretch(n.Lease), n.Promised)
	n.Lease, n.Renew, n.Drift, n.Promised = lease, renew, drift, 0
	if before > drift.Stretch(lease) {
		n.Promised = before
	}
	return n
}
