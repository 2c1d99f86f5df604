package manager

import (
	"context"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// ListChanges returns the changes of a namespace, newest first. Any manager reads them from the
// store; in a diskless group the request is forwarded to the leader.
func (s *adminService) ListChanges(ctx context.Context, r *leaseholdv1.ListChangesRequest) (*leaseholdv1.ListChangesResponse, error) {
	if answer, done, err := forwardDiskless(ctx, s.m, r, leaseholdv1.AdminServiceClient.ListChanges); done {
		return answer, err
	}
	ns := leasehold.Namespace(r.GetNamespace())
	if err := s.exists(ctx, ns); err != nil {
		return nil, wire.FromError(err)
	}
	most := pageLimit(r.GetMost(), historyPage)
	past, err := s.m.tables.History(ctx, ns, leasehold.LSN(r.GetBefore()), most+1)
	if err != nil {
		return nil, wire.FromError(err)
	}
	answer := &leaseholdv1.ListChangesResponse{More: len(past) > most}
	oldest := r.GetBefore()
	for _, p := range past[:min(most, len(past))] {
		answer.Changes = append(answer.Changes, historyEntry(p))
		oldest = uint64(p.Change.LSN)
	}
	if answer.GetMore() {
		return answer, nil
	}
	answer.Truncated = oldest > 1
	if s.m.group != nil {
		err = s.led(ctx, r.GetNamespace(), func(_ mono.Instant, led *machine.Machine) {
			answer.Truncated, answer.Begun = true, s.m.begun(led.Term())
		})
	}
	return answer, err
}

// pageLimit returns the number of entries of a reply: the requested one up to a bound, or the
// default if the request has none.
func pageLimit(asked uint32, bound int) int {
	if asked == 0 {
		return defaultHistory
	}
	return min(int(asked), bound)
}

const maxHotKeys = 1024

// ListHotKeys returns the keys with the most load, as reported by their owners.
func (s *adminService) ListHotKeys(ctx context.Context, r *leaseholdv1.ListHotKeysRequest) (*leaseholdv1.ListHotKeysResponse, error) {
	if answer, done, err := forward(ctx, s.m, r, leaseholdv1.AdminServiceClient.ListHotKeys); done {
		return answer, err
	}
	answer := &leaseholdv1.ListHotKeysResponse{}
	err := s.led(ctx, r.GetNamespace(), func(_ mono.Instant, led *machine.Machine) {
		for _, k := range led.HotKeys(pageLimit(r.GetMost(), maxHotKeys)) {
			answer.Keys = append(answer.Keys, &leaseholdv1.HotKey{Key: uint64(k.Key), Rate: k.Rate, Owner: string(k.Owner)})
		}
	})
	return answer, err
}

// ListLookups returns the lookups that are connected to this manager.
func (s *adminService) ListLookups(_ context.Context, r *leaseholdv1.ListLookupsRequest) (*leaseholdv1.ListLookupsResponse, error) {
	if err := wire.CheckClient(r.GetVersion()); err != nil {
		return nil, wire.FromError(err)
	}
	name := leasehold.Namespace(r.GetNamespace())
	answer := s.m.lookups.List(s.m.clock.Now(), name)
	if st, ok := s.m.sharding.Stats()[name]; ok {
		answer.Autosharding = &leaseholdv1.AutoshardingStatus{
			Clients: uint32(st.Clients), Sent: st.Sent, Accepted: st.Accepted, Rejected: st.Rejected, LoadReports: st.Reports, Rejection: st.Rejection,
		}
	}
	return answer, nil
}
