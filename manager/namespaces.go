package manager

import (
	"context"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// CreateNamespace adds a namespace to the catalog, and returns when it is served.
func (s *adminService) CreateNamespace(ctx context.Context, r *leaseholdv1.CreateNamespaceRequest) (*leaseholdv1.CreateNamespaceResponse, error) {
	n, err := s.readNamespace(r.GetVersion(), r.GetNamespace())
	if err != nil {
		return nil, wire.FromError(err)
	}
	if answer, done, err := forward(ctx, s.m, r, leaseholdv1.AdminServiceClient.CreateNamespace); done {
		return answer, err
	}
	if err := s.checkClaims(ctx, n); err != nil {
		return nil, wire.FromError(err)
	}
	err = s.rewrite(ctx, func(c *storage.Catalog) (*storage.Catalog, error) {
		const op = "create namespace"
		_, first := storage.First(c.Term)
		switch {
		case s.m.cfg.Peers != nil && n.After >= first:
			return nil, leasehold.Errorf(op, leasehold.ErrInvalid, string(n.Name), "it would start after generation %d, and this diskless group is at %d; check the managers' wall clocks", n.After, first)
		case c.Find(n.Name) != nil:
			return nil, leasehold.Errorf(op, leasehold.ErrExists, string(n.Name), "the namespace exists; change it with: leasehold namespace update %s", n.Name)
		case len(c.Namespaces) >= storage.MaxNamespaces && c.Entry(n.Name) == nil:
			return nil, leasehold.Errorf(op, leasehold.ErrLimit, string(n.Name), "there are %d namespaces, the maximum", len(c.Namespaces))
		}
		return c.Configured(n), nil
	})
	if err == nil {
		s.m.awaitServed(ctx, n.Name)
	}
	return &leaseholdv1.CreateNamespaceResponse{Namespace: wire.FromNamespace(n)}, wire.FromError(err)
}

// checkClaims rejects the creation of a namespace in which owners claim leases, and which the
// store never had: most likely the managers were started with another data directory. Creating it
// would end these leases. A restore sets Namespace.After, and is not checked.
func (s *adminService) checkClaims(ctx context.Context, n storage.Namespace) error {
	if s.m.cfg.Peers != nil || n.After > 0 {
		return nil
	}
	var by leasehold.OwnerID
	err := s.m.driver.Do(ctx, func(now mono.Instant) { by = s.m.node.Claimed(now, n.Name) })
	if err != nil || by == "" {
		return err
	}
	end, err := s.m.tables.End(ctx, n.Name)
	if err != nil || end.LSN > 0 {
		return err
	}
	return leasehold.Errorf("create namespace", leasehold.ErrInvalid, string(n.Name),
		"owner %q holds leases in a namespace of this name, which this store never had, and would lose them. Do the managers run with another data directory or store than before? 'leasehold manager restore' creates the namespaces of a lost group from a backup. To end these leases, stop the servers that hold them, and retry %v later", by, managerproc.ClaimAge)
}

// UpdateNamespace replaces a namespace's configuration.
func (s *adminService) UpdateNamespace(ctx context.Context, r *leaseholdv1.UpdateNamespaceRequest) (*leaseholdv1.UpdateNamespaceResponse, error) {
	n, err := s.readNamespace(r.GetVersion(), r.GetNamespace())
	if err != nil {
		return nil, wire.FromError(err)
	}
	if answer, done, err := forward(ctx, s.m, r, leaseholdv1.AdminServiceClient.UpdateNamespace); done {
		return answer, err
	}
	err = s.rewrite(ctx, func(c *storage.Catalog) (*storage.Catalog, error) {
		if c.Find(n.Name) == nil {
			return nil, noSuchNamespace(n.Name)
		}
		return c.Configured(n), nil
	})
	return &leaseholdv1.UpdateNamespaceResponse{Namespace: wire.FromNamespace(n)}, wire.FromError(err)
}

// DeleteNamespace marks a namespace as deleted; the machine ends its leases. Its table stays in
// the store, so that generations continue if the namespace is created again.
func (s *adminService) DeleteNamespace(ctx context.Context, r *leaseholdv1.DeleteNamespaceRequest) (*leaseholdv1.DeleteNamespaceResponse, error) {
	if answer, done, err := forward(ctx, s.m, r, leaseholdv1.AdminServiceClient.DeleteNamespace); done {
		return answer, err
	}
	name := leasehold.Namespace(r.GetName())
	err := s.rewrite(ctx, func(c *storage.Catalog) (*storage.Catalog, error) {
		if next := c.Deleted(name); next != nil {
			return next, nil
		}
		return nil, noSuchNamespace(name)
	})
	return &leaseholdv1.DeleteNamespaceResponse{}, wire.FromError(err)
}

func (s *adminService) readNamespace(version uint32, c *leaseholdv1.NamespaceConfig) (storage.Namespace, error) {
	if err := wire.CheckClient(version); err != nil {
		return storage.Namespace{}, err
	}
	n, err := wire.ToNamespace(c)
	if err == nil {
		err = s.m.cfg.checkHold(n)
	}
	return n, err
}

// rewrite changes the catalog, passes the stored catalog to the machine, and waits until the
// machine has applied it. It fails unless this manager leads.
func (s *adminService) rewrite(ctx context.Context, change func(*storage.Catalog) (*storage.Catalog, error)) error {
	var term leasehold.Term
	err := s.m.driver.Do(ctx, func(now mono.Instant) {
		if s.m.node.Leads(now) {
			term = s.m.node.Term()
		}
	})
	if err != nil {
		return err
	}
	if term == 0 {
		return s.m.errNoLeader("write namespaces")
	}
	catalog, err := s.m.store.rewrite(ctx, term, change)
	// The write may have taken effect even if it failed or the call was cancelled. So the machine
	// receives the catalog in any case, and reads it if it is nil.
	s.m.driver.PostUrgent(s.m.ctx, managerproc.Catalogued{Term: term, Catalog: catalog})
	if err != nil {
		return err
	}
	return s.m.driver.Do(ctx, func(mono.Instant) {}) // runs after the event
}
