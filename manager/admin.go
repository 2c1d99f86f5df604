package manager

import (
	"context"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// adminService answers people and their tools. What only the leader knows is
// forwarded to it: see forward.go.
type adminService struct {
	leaseholdv1.UnimplementedAdminServiceServer
	m *Manager
}

// ListNamespaces returns all namespaces that the caller may see, with their
// configuration.
func (s *adminService) ListNamespaces(ctx context.Context, r *leaseholdv1.ListNamespacesRequest) (*leaseholdv1.ListNamespacesResponse, error) {
	if err := wire.CheckVersion(r.GetVersion()); err != nil {
		return nil, wire.FromError(err)
	}
	if s.m.group != nil { // only the leader knows
		if answer, done, err := forward(ctx, s.m, r, leaseholdv1.AdminServiceClient.ListNamespaces); done {
			return answer, err
		}
	}
	catalog, err := s.m.tables.Catalog(ctx)
	if err != nil {
		return nil, wire.FromError(err)
	}
	answer := &leaseholdv1.ListNamespacesResponse{}
	visible := s.m.visible(ctx)
	for _, n := range catalog.Namespaces {
		if !n.Deleted && visible(n.Name) {
			answer.Namespaces = append(answer.Namespaces, wire.FromNamespace(n))
		}
	}
	return answer, nil
}

// led calls f between two events with the machine that leads a
// namespace, or says why there is none.
func (s *adminService) led(ctx context.Context, ns string, f func(now mono.Instant, led *machine.Machine)) error {
	var failed error
	err := s.m.driver.Do(ctx, func(now mono.Instant) {
		name := leasehold.Namespace(ns)
		led := s.m.node.Manager(name)
		catalog := s.m.node.Catalog()
		switch {
		case led != nil && s.m.node.Leads(now):
			f(now, led)
		case !s.m.node.Leads(now) || catalog == nil:
			failed = leasehold.Errorf("ask", leasehold.ErrNotLeader, s.m.cfg.Advertise, "this manager does not lead, and knows of none that does; try again in a few seconds")
		case catalog.Find(name) == nil:
			failed = noSuchNamespace(name)
		case s.m.node.Problem(name) != nil:
			failed = s.m.node.Problem(name)
		default:
			failed = leasehold.Errorf("ask", leasehold.ErrUnavailable, ns, "%s; try again in a few seconds", s.m.notReadyReason(now, name))
		}
	})
	if err == nil {
		err = failed
	}
	return wire.FromError(err)
}

func noSuchNamespace(ns leasehold.Namespace) error {
	return leasehold.Errorf("find namespace", leasehold.ErrNotFound, string(ns),
		"there is no such namespace; create it with: leasehold namespace create %s", ns)
}

// ListOwners returns who is connected, who waits, and who is only waited for.
func (s *adminService) ListOwners(ctx context.Context, r *leaseholdv1.ListOwnersRequest) (*leaseholdv1.ListOwnersResponse, error) {
	if answer, done, err := forward(ctx, s.m, r, leaseholdv1.AdminServiceClient.ListOwners); done {
		return answer, err
	}
	answer := &leaseholdv1.ListOwnersResponse{Version: wire.Version}
	err := s.led(ctx, r.GetNamespace(), func(now mono.Instant, led *machine.Machine) {
		answer.Lsn = uint64(led.Table().LSN())
		for _, o := range led.Owners(now) {
			answer.Owners = append(answer.Owners, &leaseholdv1.OwnerStatus{
				Holder: wire.FromHolder(o.Holder), State: leaseholdv1.OwnerState(o.Standing),
				Leases: uint32(o.Leases), Share: o.Share, Patience: int64(o.Patience), Load: o.Load,
				Parting: o.Parting, Draining: o.Draining, MovesState: o.Mover,
				MovesIn: uint32(o.MovesIn), MovesOut: uint32(o.MovesOut), Suspended: o.Suspended,
			})
		}
	})
	return answer, err
}

// rangesPerMessage bounds a piece of a table.
const rangesPerMessage = 4096

// ListRanges returns the lease table in pieces.
func (s *adminService) ListRanges(r *leaseholdv1.ListRangesRequest, stream leaseholdv1.AdminService_ListRangesServer) error {
	if done, err := forwardStream(stream.Context(), s.m, r, leaseholdv1.AdminServiceClient.ListRanges, stream.Send); done {
		return err
	}
	var frozen *table.Table
	var term leasehold.Term
	if err := s.led(stream.Context(), r.GetNamespace(), func(_ mono.Instant, led *machine.Machine) { frozen, term = led.Frozen(), led.Term() }); err != nil {
		return err
	}
	begun := s.m.begun(term)
	piece := &leaseholdv1.ListRangesResponse{Lsn: uint64(frozen.LSN()), Begun: begun}
	for rg, e := range frozen.All() {
		if r.GetOwner() != "" && (e.Vacant() || string(e.Holder.Owner) != r.GetOwner()) {
			continue
		}
		piece.Ranges = append(piece.Ranges, heldRange(rg, e))
		if len(piece.GetRanges()) == rangesPerMessage {
			if err := stream.Send(piece); err != nil {
				return err
			}
			piece = &leaseholdv1.ListRangesResponse{Lsn: uint64(frozen.LSN()), Begun: begun}
		}
	}
	return stream.Send(piece)
}

func heldRange(r leasehold.Range, e table.Entry) *leaseholdv1.HeldRange {
	out := &leaseholdv1.HeldRange{
		Lease: wire.FromLease(leasehold.Lease{Range: r, Generation: e.Generation}), Lost: uint64(e.Lost),
	}
	if !e.Vacant() {
		out.Owner, out.Addr = string(e.Holder.Owner), e.Holder.Addr
	}
	return out
}

// LookupKey says who holds a key.
func (s *adminService) LookupKey(ctx context.Context, r *leaseholdv1.LookupKeyRequest) (*leaseholdv1.LookupKeyResponse, error) {
	if answer, done, err := forward(ctx, s.m, r, leaseholdv1.AdminServiceClient.LookupKey); done {
		return answer, err
	}
	answer := &leaseholdv1.LookupKeyResponse{}
	err := s.led(ctx, r.GetNamespace(), func(_ mono.Instant, led *machine.Machine) {
		answer.Lsn, answer.Begun = uint64(led.Table().LSN()), s.m.begun(led.Term())
		answer.Range = heldRange(led.Table().At(leasehold.Key(r.GetKey())))
	})
	return answer, err
}

// begun is where the tables of a term begin: at 0 if they are read from a store, and
// where the leader has found out what there is if they are not.
func (m *Manager) begun(term leasehold.Term) uint64 {
	if m.group == nil {
		return 0
	}
	lsn, _ := storage.First(term)
	return uint64(lsn)
}
