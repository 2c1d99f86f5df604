package admin

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A Namespace is the configuration of a namespace. In a request, zero fields mean the default.
type Namespace struct {
	Name         string  `json:"name"`
	Lease        Seconds `json:"leaseSeconds"` // default 10 s
	Renew        Seconds `json:"renewSeconds"` // default a quarter of the lease
	Drift        float64 `json:"drift"`        // the bound on how much the rates of two clocks differ; default 1.2
	Policy       string  `json:"policy"`       // balanced (the default), adaptive, consistent, even or static
	VirtualNodes uint32  `json:"virtualNodes,omitempty"`
	Static       []Slot  `json:"static,omitempty"` // of the policy static, sorted, from key 0 on
	MaxOwners    uint32  `json:"maxOwners"`        // default 4096

	// Managers of protocol version 1 do not report these.
	Churn       float64 `json:"churn,omitempty"`             // share of the keys that may move in a minute for balance; default 0.09
	Rebalance   Seconds `json:"rebalanceSeconds,omitzero"`   // interval of balancing by load; default 10 s
	Moves       uint32  `json:"moves,omitempty"`             // of an owner at a time; default 4
	MoveTimeout Seconds `json:"moveTimeoutSeconds,omitzero"` // without progress; default 1 min

	// The mean load per owner from which on loads are balanced, per second, and the unit of loads. With
	// owner.LoadReported it is that of the application.
	MinLoad  float64 `json:"minLoad,omitempty"`  // default 50
	LoadUnit string  `json:"loadUnit,omitempty"` // default "requests"

	// AfterGeneration makes all generations newer than this one. It is for a namespace that
	// replaces a lost one.
	AfterGeneration leasehold.Generation `json:"afterGeneration,omitempty,string"`
}

// Hold returns for how long the keys of an owner that is lost may have no owner: the lease times the drift. Zero fields mean
// the default.
func (n *Namespace) Hold() time.Duration {
	usual := protocol.DefaultTiming()
	drift := mono.Drift(cmp.Or(n.Drift, float64(usual.Drift)))
	return drift.Stretch(cmp.Or(time.Duration(n.Lease), usual.Lease))
}

// A Slot gives the keys from Start up to the next slot to an owner.
type Slot struct {
	Start Point  `json:"start"`
	Owner string `json:"owner"` // "": no owner
}

// Namespaces returns the configurations of all namespaces that the caller may see, sorted by name.
func (c *Client) Namespaces(ctx context.Context) ([]Namespace, error) {
	return read(ctx, c, namespaces)
}

func namespaces(ctx context.Context, s service) ([]Namespace, error) {
	answer, err := s.ListNamespaces(ctx, &leaseholdv1.ListNamespacesRequest{Version: wire.Version})
	all := convert(answer.GetNamespaces(), namespaceOf)
	slices.SortFunc(all, func(a, b Namespace) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

// Namespace returns the configuration of one namespace.
func (c *Client) Namespace(ctx context.Context, name string) (Namespace, error) {
	return read(ctx, c, func(ctx context.Context, s service) (Namespace, error) {
		return namespace(ctx, s, name)
	})
}

func namespace(ctx context.Context, s service, name string) (Namespace, error) {
	all, err := namespaces(ctx, s)
	if err != nil {
		return Namespace{}, err
	}
	n, found := FindNamespace(all, name)
	if !found {
		return n, leasehold.Errorf("namespace", leasehold.ErrNotFound, name, "the namespace does not exist")
	}
	return n, nil
}

// FindNamespace returns the configuration with a name; false if there is none.
func FindNamespace(all []Namespace, name string) (n Namespace, found bool) {
	i := slices.IndexFunc(all, func(n Namespace) bool { return n.Name == name })
	if i < 0 {
		return n, false
	}
	return all[i], true
}

// CreateNamespace creates a namespace, and returns its configuration with all defaults when the leader serves it. If there is
// one of this name, the error is of the kind leasehold.ErrExists.
func (c *Client) CreateNamespace(ctx context.Context, wanted Namespace) (Namespace, error) {
	var created Namespace
	err := c.change(ctx, func(ctx context.Context, s service) error {
		answer, err := s.CreateNamespace(ctx, &leaseholdv1.CreateNamespaceRequest{Version: wire.Version, Namespace: wanted.proto()})
		created = namespaceOf(answer.GetNamespace())
		return err
	})
	return created, err
}

// UpdateNamespace reads the configuration of a namespace, calls edit, and writes the result. Concurrent
// updates may overwrite each other. Held leases keep their durations.
func (c *Client) UpdateNamespace(ctx context.Context, name string, edit func(*Namespace) error) (Namespace, error) {
	var updated Namespace
	err := c.change(ctx, func(ctx context.Context, s service) error {
		wanted, err := namespace(ctx, s, name)
		if err != nil {
			return wire.ToError(err) // before the change
		}
		if err := edit(&wanted); err != nil {
			return err
		}
		answer, err := s.UpdateNamespace(ctx, &leaseholdv1.UpdateNamespaceRequest{Version: wire.Version, Namespace: wanted.proto()})
		updated = namespaceOf(answer.GetNamespace())
		return err
	})
	return updated, err
}

// DeleteNamespace deletes a namespace and its leases, for good. If there is none of this name, the
// error is of the kind leasehold.ErrNotFound.
func (c *Client) DeleteNamespace(ctx context.Context, name string) error {
	return c.change(ctx, func(ctx context.Context, s service) error {
		if _, err := namespace(ctx, s, name); err != nil {
			return wire.ToError(err) // before the change
		}
		_, err := s.DeleteNamespace(ctx, &leaseholdv1.DeleteNamespaceRequest{Version: wire.Version, Name: name})
		return err
	})
}

func namespaceOf(n *leaseholdv1.NamespaceConfig) Namespace {
	out := Namespace{
		Name:  n.GetName(),
		Lease: Seconds(n.GetTiming().GetLease()), Renew: Seconds(n.GetTiming().GetRenew()), Drift: n.GetTiming().GetDrift(),
		Policy: n.GetPolicy(), VirtualNodes: n.GetVirtualNodes(), MaxOwners: n.GetMaxOwners(),
		Churn: n.GetChurn(), Rebalance: Seconds(n.GetRebalance()), Moves: n.GetMoves(), MoveTimeout: Seconds(n.GetMoveTimeout()),
		MinLoad: n.GetMinLoad(), LoadUnit: n.GetLoadUnit(),
		AfterGeneration: leasehold.Generation(n.GetAfterGeneration()),
	}
	for _, s := range n.GetStatic() {
		out.Static = append(out.Static, Slot{Point(s.GetStart()), s.GetOwner()})
	}
	return out
}

func (n Namespace) proto() *leaseholdv1.NamespaceConfig {
	out := &leaseholdv1.NamespaceConfig{
		Name:   n.Name,
		Timing: &leaseholdv1.Timing{Lease: int64(n.Lease), Renew: int64(n.Renew), Drift: n.Drift},
		Policy: n.Policy, VirtualNodes: n.VirtualNodes, MaxOwners: n.MaxOwners,
		Churn: n.Churn, Rebalance: int64(n.Rebalance), Moves: n.Moves, MoveTimeout: int64(n.MoveTimeout),
		MinLoad: n.MinLoad, LoadUnit: n.LoadUnit,
		AfterGeneration: uint64(n.AfterGeneration),
	}
	for _, s := range n.Static {
		out.Static = append(out.Static, &leaseholdv1.StaticSlot{Start: uint64(s.Start), Owner: s.Owner})
	}
	return out
}
