package manager

import (
	"context"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/mono"
	"github.com/leasehold-dev/leasehold/internal/table"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/store"
)

// adminService answers people and their tools. What only the leader knows is
// forwarded to it: see forward.go.
type adminService struct {
	leaseholdv1.UnimplementedAdminServiceServer
	m *Manager
}

// ListNamespaces returns all namespaces with their configuration.
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
	for _, n := range catalog.Namespaces {
		if !n.Deleted {
			answer.Namespaces = append(answer.Namespaces, wire.FromNamespace(n))
		}
	}
	return answer, nil
}

// led calls f on the driver's goroutine with the machine that leads a
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
			failed = leasehold.Errorf("ask", leasehold.NotLeader, s.m.cfg.Advertise, "this manager does not lead, and knows of none that does; try again in a few seconds")
		case catalog.Find(name) == nil:
			failed = noSuchNamespace(name)
		case s.m.node.Problem(name) != nil:
			failed = s.m.node.Problem(name)
		default:
			failed = leasehold.Errorf("ask", leasehold.Unavailable, ns, "%s; try again in a few seconds", s.m.unready(now, name))
		}
	})
	if err == nil {
		err = failed
	}
	return wire.FromError(err)
}

func noSuchNamespace(ns leasehold.Namespace) error {
	return leasehold.Errorf("find namespace", leasehold.NotFound, string(ns),
		"there is no such namespace; create it with: leasehold namespace create %s", ns)
}

// ListOwners returns who is connected, who waits, and who is only waited for.
func (s *adminService) ListOwners(ctx context.Context, r *leaseholdv1.ListOwnersRequest) (*leaseholdv1.ListOwnersResponse, error) {
	if err := wire.CheckVersion(r.GetVersion()); err != nil {
		return nil, wire.FromError(err)
	}
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
				MovesIn: uint32(o.MovesIn), MovesOut: uint32(o.MovesOut),
			})
		}
	})
	return answer, err
}

// rangesPerMessage bounds a piece of a table.
const rangesPerMessage = 4096

// ListRanges returns the lease table in pieces.
func (s *adminService) ListRanges(r *leaseholdv1.ListRangesRequest, stream leaseholdv1.AdminService_ListRangesServer) error {
	if err := wire.CheckVersion(r.GetVersion()); err != nil {
		return wire.FromError(err)
	}
	if done, err := forwardStream(stream.Context(), s.m, r, leaseholdv1.AdminServiceClient.ListRanges, stream.Send); done {
		return err
	}
	var frozen *table.Table
	if err := s.led(stream.Context(), r.GetNamespace(), func(_ mono.Instant, led *machine.Machine) { frozen = led.Frozen() }); err != nil {
		return err
	}
	piece := &leaseholdv1.ListRangesResponse{Lsn: uint64(frozen.LSN())}
	for rg, e := range frozen.All() {
		if r.GetOwner() != "" && (e.Vacant() || string(e.Holder.Owner) != r.GetOwner()) {
			continue
		}
		piece.Ranges = append(piece.Ranges, heldRange(rg, e))
		if len(piece.GetRanges()) == rangesPerMessage {
			if err := stream.Send(piece); err != nil {
				return err
			}
			piece = &leaseholdv1.ListRangesResponse{Lsn: uint64(frozen.LSN())}
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
	if err := wire.CheckVersion(r.GetVersion()); err != nil {
		return nil, wire.FromError(err)
	}
	if answer, done, err := forward(ctx, s.m, r, leaseholdv1.AdminServiceClient.LookupKey); done {
		return answer, err
	}
	answer := &leaseholdv1.LookupKeyResponse{}
	err := s.led(ctx, r.GetNamespace(), func(_ mono.Instant, led *machine.Machine) {
		answer.Lsn = uint64(led.Table().LSN())
		answer.Range = heldRange(led.Table().At(leasehold.Key(r.GetKey())))
	})
	return answer, err
}

// Bounds on how much history is read for one answer.
const (
	usualHistory   = 100
	mostHistory    = 10_000
	historyAtATime = 4096
)

// ListHistory reads the log backwards. Any manager can: the store knows. Where there
// is none the leader does.
func (s *adminService) ListHistory(ctx context.Context, r *leaseholdv1.ListHistoryRequest) (*leaseholdv1.ListHistoryResponse, error) {
	if err := wire.CheckVersion(r.GetVersion()); err != nil {
		return nil, wire.FromError(err)
	}
	if s.m.group != nil {
		if answer, done, err := forward(ctx, s.m, r, leaseholdv1.AdminServiceClient.ListHistory); done {
			return answer, err
		}
	}
	ns := leasehold.Namespace(r.GetNamespace())
	if err := s.exists(ctx, ns); err != nil {
		return nil, wire.FromError(err)
	}
	most := min(int(r.GetMost()), mostHistory)
	if most == 0 {
		most = usualHistory
	}
	answer := &leaseholdv1.ListHistoryResponse{}
	var before leasehold.LSN
	for {
		past, err := s.m.tables.History(ctx, ns, before, historyAtATime)
		if err != nil {
			return nil, wire.FromError(err)
		}
		for _, p := range past {
			before = p.Change.LSN
			if !p.Change.Range.Contains(leasehold.Key(r.GetKey())) {
				continue
			}
			if len(answer.GetEntries()) == most {
				answer.More = true
				return answer, nil
			}
			answer.Entries = append(answer.Entries, historyEntry(p))
		}
		if len(past) < historyAtATime {
			answer.Truncated = before > 1
			return answer, nil
		}
	}
}

func (s *adminService) exists(ctx context.Context, ns leasehold.Namespace) error {
	catalog, err := s.m.tables.Catalog(ctx)
	if err == nil && catalog.Find(ns) == nil {
		err = noSuchNamespace(ns)
	}
	return err
}

func historyEntry(p store.Past) *leaseholdv1.HistoryEntry {
	entry := &leaseholdv1.HistoryEntry{
		Lsn: uint64(p.Change.LSN), At: timestamppb.New(p.At), Kind: leaseholdv1.ChangeKind(p.Change.Kind),
		Lease:  wire.FromLease(leasehold.Lease{Range: p.Change.Range, Generation: p.Change.Generation}),
		Holder: wire.FromHolder(p.Change.Holder), Cause: leaseholdv1.Cause(p.Change.Cause),
	}
	if p.Change.From != nil {
		entry.From = wire.FromHolder(p.Change.From)
	}
	return entry
}
