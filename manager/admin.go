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

// adminService serves operators and their tools. Requests that only the leader can serve are
// forwarded: see forward.go.
type adminService struct {
	leaseholdv1.UnimplementedAdminServiceServer
	m *Manager
}

// ListNamespaces returns all namespaces that the caller may see, with their
// configuration.
func (s *adminService) ListNamespaces(ctx context.Context, r *leaseholdv1.ListNamespacesRequest) (*leaseholdv1.ListNamespacesResponse, error) {
	if answer, done, err := forwardDiskless(ctx, s.m, r, leaseholdv1.AdminServiceClient.ListNamespaces); done {
		return answer, err
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

// led calls f on the driver's goroutine with the machine of a namespace, or returns why this
// manager has none.
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
			failed = s.m.errNoLeader("query")
		case catalog.Find(name) == nil:
			failed = noSuchNamespace(name)
		case s.m.node.Problem(name) != nil:
			failed = s.m.node.Problem(name)
		default:
			failed = leasehold.Errorf("query", leasehold.ErrUnavailable, ns, "%s; try again in a few seconds", s.m.notReadyReason(now, name))
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

func (m *Manager) errNoLeader(op string) error {
	return leasehold.Errorf(op, leasehold.ErrNotLeader, m.cfg.Advertise, "this manager does not lead, and no other leader is known; try again in a few seconds")
}

// ListOwners returns the connected, the waiting and the silent owners.
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
				MovesIn: uint32(o.MovesIn), MovesOut: uint32(o.MovesOut), Suspended: o.Suspended, Supervised: &o.Supervised,
			})
		}
	})
	return answer, err
}

// rangesPerMessage bounds one message of ListRanges.
const rangesPerMessage = 4096

// ListRanges returns the lease table in several messages.
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

// LookupKey returns the owner of a key.
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

// begun returns the first LSN of the logs of a term: 0 with a store; in a diskless group the LSN
// of the leader's census.
func (m *Manager) begun(term leasehold.Term) uint64 {
	if m.group == nil {
		return 0
	}
	lsn, _ := storage.First(term)
	return uint64(lsn)
}
