package dashboard

import (
	"context"
	"fmt"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A fakeAdmin responds like a manager with a real table.
type fakeAdmin struct {
	leaseholdv1.UnimplementedAdminServiceServer

	mu       sync.Mutex
	calls    int // of all kinds
	down     error
	deaf     error // Watch fails
	absent   bool  // there is no namespace
	term     uint64
	table    *table.Table
	past     []*leaseholdv1.HistoryEntry // the oldest first
	owners   []*leaseholdv1.OwnerStatus
	moves    *leaseholdv1.ListMovesResponse
	hot      *leaseholdv1.ListHotKeysResponse
	lookups  *leaseholdv1.ListLookupsResponse
	members  *leaseholdv1.ListMembersResponse
	besides  *leaseholdv1.GetStatusResponse // additional fields of the status
	watchers map[chan *leaseholdv1.WatchResponse]bool
	plan     *leaseholdv1.Plan // of orders; nil: a small one
	drained  []*leaseholdv1.DrainOwnerRequest
	moved    []*leaseholdv1.MoveRangeRequest
}

func newFakeAdmin() *fakeAdmin {
	return &fakeAdmin{table: table.New(), besides: &leaseholdv1.GetStatusResponse{}, watchers: make(map[chan *leaseholdv1.WatchResponse]bool)}
}

// change changes the table, and sends the event to all watchers.
func (f *fakeAdmin) change(kind table.Kind, r leasehold.Range, generation leasehold.Generation, holder, from *table.Holder) admin.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := &table.Change{LSN: f.table.LSN() + 1, Kind: kind, Range: r, Generation: generation, Holder: holder, From: from}
	if kind == table.Vacated {
		c.Cause = leasehold.CauseExpired
	}
	if err := f.table.Apply(c); err != nil {
		panic(fmt.Sprintf("%v: %v", c, err))
	}
	at := timestamppb.Now()
	entry := &leaseholdv1.HistoryEntry{
		Lsn: uint64(c.LSN), At: at, Kind: leaseholdv1.ChangeKind(kind), Cause: leaseholdv1.Cause(c.Cause),
		Lease: wire.FromLease(leasehold.Lease{Range: r, Generation: generation}), Holder: wire.FromHolder(holder),
	}
	if from != nil {
		entry.From = wire.FromHolder(from)
	}
	f.past = append(f.past, entry)
	event := &leaseholdv1.WatchResponse{At: at, Event: &leaseholdv1.WatchResponse_Change{Change: entry}}
	for w := range f.watchers {
		w <- event
	}
	return admin.EventOf(event)
}

// ask counts a call, and fails it if the manager is down.
func (f *fakeAdmin) ask() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	return wire.FromError(f.down)
}

func (f *fakeAdmin) asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

func (f *fakeAdmin) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = err
}

func (f *fakeAdmin) GetStatus(context.Context, *leaseholdv1.GetStatusRequest) (*leaseholdv1.GetStatusResponse, error) {
	err := f.ask()
	f.mu.Lock()
	defer f.mu.Unlock()
	answer := &leaseholdv1.GetStatusResponse{Manager: "m1:7400", Leader: "m1:7400", Term: 1 + f.term}
	proto.Merge(answer, f.besides)
	if !f.absent {
		answer.Namespaces = []*leaseholdv1.NamespaceStatus{{Name: "pool", Ready: true}}
	}
	return answer, err
}

// set changes the state of the manager.
func (f *fakeAdmin) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fakeAdmin) ListNamespaces(context.Context, *leaseholdv1.ListNamespacesRequest) (*leaseholdv1.ListNamespacesResponse, error) {
	timing := &leaseholdv1.Timing{Lease: 10e9, Renew: 25e8, Drift: 1.2}
	return &leaseholdv1.ListNamespacesResponse{Namespaces: []*leaseholdv1.NamespaceConfig{{Name: "pool", Policy: "balanced", Timing: timing}}}, f.ask()
}

func (f *fakeAdmin) ListOwners(context.Context, *leaseholdv1.ListOwnersRequest) (*leaseholdv1.ListOwnersResponse, error) {
	err := f.ask()
	f.mu.Lock()
	defer f.mu.Unlock()
	return &leaseholdv1.ListOwnersResponse{Version: wire.Version, Owners: f.owners}, err
}

func (f *fakeAdmin) ListMoves(context.Context, *leaseholdv1.ListMovesRequest) (*leaseholdv1.ListMovesResponse, error) {
	return &leaseholdv1.ListMovesResponse{Moves: f.moves.GetMoves(), UnderWay: f.moves.GetUnderWay(), Waiting: f.moves.GetWaiting()}, f.ask()
}

func (f *fakeAdmin) ListHotKeys(context.Context, *leaseholdv1.ListHotKeysRequest) (*leaseholdv1.ListHotKeysResponse, error) {
	return f.hot, f.unless(f.hot == nil)
}

func (f *fakeAdmin) ListLookups(context.Context, *leaseholdv1.ListLookupsRequest) (*leaseholdv1.ListLookupsResponse, error) {
	return f.lookups, f.unless(f.lookups == nil)
}

func (f *fakeAdmin) ListMembers(context.Context, *leaseholdv1.ListMembersRequest) (*leaseholdv1.ListMembersResponse, error) {
	return f.members, f.unless(f.members == nil)
}

// unless fails requests that a manager of an earlier version does not support.
func (f *fakeAdmin) unless(unknown bool) error {
	if unknown {
		return status.Error(codes.Unimplemented, "not known")
	}
	return f.ask()
}

func (f *fakeAdmin) ListRanges(_ *leaseholdv1.ListRangesRequest, stream leaseholdv1.AdminService_ListRangesServer) error {
	err := f.ask()
	f.mu.Lock()
	defer f.mu.Unlock()
	piece := &leaseholdv1.ListRangesResponse{Lsn: uint64(f.table.LSN())}
	for r, e := range f.table.All() {
		held := &leaseholdv1.HeldRange{Lease: wire.FromLease(leasehold.Lease{Range: r, Generation: e.Generation}), Lost: uint64(e.Lost)}
		if !e.Vacant() {
			held.Owner, held.Addr = string(e.Holder.Owner), e.Holder.Addr
		}
		piece.Ranges = append(piece.Ranges, held)
	}
	if err != nil {
		return err
	}
	return stream.Send(piece)
}

func (f *fakeAdmin) ListChanges(_ context.Context, r *leaseholdv1.ListChangesRequest) (*leaseholdv1.ListChangesResponse, error) {
	err := f.ask()
	f.mu.Lock()
	defer f.mu.Unlock()
	answer := &leaseholdv1.ListChangesResponse{}
	for i := len(f.past) - 1; i >= 0; i-- {
		if r.GetBefore() == 0 || f.past[i].GetLsn() < r.GetBefore() {
			answer.Changes = append(answer.Changes, f.past[i])
		}
		if len(answer.GetChanges()) == int(r.GetMost()) {
			answer.More = i > 0
			break
		}
	}
	return answer, err
}

func (f *fakeAdmin) Watch(r *leaseholdv1.WatchRequest, stream leaseholdv1.AdminService_WatchServer) error {
	if err := f.ask(); err != nil {
		return err
	}
	events := make(chan *leaseholdv1.WatchResponse, 1<<12)
	f.mu.Lock()
	term, err := f.term, f.deaf
	if f.absent || r.GetNamespace() != "pool" {
		err = leasehold.Errorf("watch", leasehold.ErrNotFound, r.GetNamespace(), "there is no such namespace")
	}
	if err == nil {
		f.watchers[events] = true
	}
	f.mu.Unlock()
	if err != nil {
		return wire.FromError(err)
	}
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watchers, events)
	}()
	first := leads()
	first.GetLeader().Term += term
	if err := stream.Send(first); err != nil {
		return err
	}
	for {
		select {
		case <-stream.Context().Done():
			return nil
		case e, open := <-events:
			if !open {
				return wire.FromError(leasehold.Errorf("watch", leasehold.ErrNotLeader, "m1", "no longer"))
			}
			if err := stream.Send(e); err != nil {
				return err
			}
		}
	}
}

func leads() *leaseholdv1.WatchResponse {
	return &leaseholdv1.WatchResponse{At: timestamppb.Now(), Event: &leaseholdv1.WatchResponse_Leader{Leader: &leaseholdv1.NotLeader{Term: 1, Leader: "m1:7400"}}}
}

// hangUp ends all watches.
func (f *fakeAdmin) hangUp() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range f.watchers {
		delete(f.watchers, w)
		close(w)
	}
}

func (f *fakeAdmin) DrainOwner(_ context.Context, r *leaseholdv1.DrainOwnerRequest) (*leaseholdv1.DrainOwnerResponse, error) {
	err := f.ask()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drained = append(f.drained, r)
	if f.plan != nil {
		return &leaseholdv1.DrainOwnerResponse{Plan: f.plan}, err
	}
	return &leaseholdv1.DrainOwnerResponse{Plan: &leaseholdv1.Plan{Total: 1, Share: .5, Moves: []*leaseholdv1.PlannedMove{{From: "a", To: "b", WithState: true}}}}, err
}

func (f *fakeAdmin) MoveRange(_ context.Context, r *leaseholdv1.MoveRangeRequest) (*leaseholdv1.MoveRangeResponse, error) {
	err := f.ask()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.moved = append(f.moved, r)
	return &leaseholdv1.MoveRangeResponse{Plan: &leaseholdv1.Plan{Total: 1}}, err
}

func (f *fakeAdmin) LookupKey(_ context.Context, r *leaseholdv1.LookupKeyRequest) (*leaseholdv1.LookupKeyResponse, error) {
	err := f.ask()
	f.mu.Lock()
	defer f.mu.Unlock()
	keys, e := f.table.At(leasehold.Key(r.GetKey()))
	held := &leaseholdv1.HeldRange{Lease: wire.FromLease(leasehold.Lease{Range: keys, Generation: e.Generation}), Lost: uint64(e.Lost)}
	if !e.Vacant() {
		held.Owner, held.Addr = string(e.Holder.Owner), e.Holder.Addr
	}
	return &leaseholdv1.LookupKeyResponse{Range: held, Lsn: uint64(f.table.LSN())}, err
}

func (f *fakeAdmin) ListHistory(_ context.Context, r *leaseholdv1.ListHistoryRequest) (*leaseholdv1.ListHistoryResponse, error) {
	err := f.ask()
	f.mu.Lock()
	defer f.mu.Unlock()
	answer := &leaseholdv1.ListHistoryResponse{}
	for i := len(f.past) - 1; i >= 0; i-- {
		l := f.past[i].GetLease()
		if (leasehold.Range{Start: leasehold.Key(l.GetStart()), Limit: leasehold.Key(l.GetLimit())}).Contains(leasehold.Key(r.GetKey())) {
			answer.Entries = append(answer.Entries, f.past[i])
		}
	}
	return answer, err
}
