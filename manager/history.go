package manager

import (
	"context"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// Bounds on the history in one reply, and in one read of the store.
const (
	defaultHistory = 100
	maxHistory     = 10_000
	historyPage    = 4096
)

// ListHistory returns the changes of a key, newest first. Any manager reads them from the store;
// in a diskless group the request is forwarded to the leader.
func (s *adminService) ListHistory(ctx context.Context, r *leaseholdv1.ListHistoryRequest) (*leaseholdv1.ListHistoryResponse, error) {
	if answer, done, err := forwardDiskless(ctx, s.m, r, leaseholdv1.AdminServiceClient.ListHistory); done {
		return answer, err
	}
	ns := leasehold.Namespace(r.GetNamespace())
	if err := s.exists(ctx, ns); err != nil {
		return nil, wire.FromError(err)
	}
	most := pageLimit(r.GetMost(), maxHistory)
	answer := &leaseholdv1.ListHistoryResponse{}
	held, begun, err := s.present(ctx, r)
	if err != nil {
		return nil, err
	}
	var before leasehold.LSN
	for {
		past, err := s.m.tables.History(ctx, ns, before, historyPage)
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
		if len(past) < historyPage {
			answer.Truncated, answer.Begun = before > 1 || s.m.group != nil, begun
			if len(answer.GetEntries()) == 0 && held.GetOwner() != "" {
				answer.Before = held // the owner has not changed since the log begins
			}
			return answer, nil
		}
	}
}

// present returns the current lease of a key, and the LSN at which the log begins, in a diskless
// group: there the log does not begin with the namespace's first lease. With a store they are nil
// and 0.
func (s *adminService) present(ctx context.Context, r *leaseholdv1.ListHistoryRequest) (held *leaseholdv1.HeldRange, begun uint64, err error) {
	if s.m.group != nil {
		err = s.led(ctx, r.GetNamespace(), func(_ mono.Instant, led *machine.Machine) {
			held, begun = heldRange(led.Table().At(leasehold.Key(r.GetKey()))), s.m.begun(led.Term())
		})
	}
	return held, begun, err
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
		Reason: leaseholdv1.Reason(p.Change.Reason),
	}
	if p.Change.From != nil {
		entry.From = wire.FromHolder(p.Change.From)
	}
	return entry
}
