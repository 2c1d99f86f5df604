package main

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A fakeManager is a manager whose namespaces all have the same owners and history. Its namespaces
// can be changed.
type fakeManager struct {
	leaseholdv1.UnimplementedAdminServiceServer
	addr string
	// events are sent by Watch; then the stream ends with failure, or if that
	// is nil, when the caller cancels it.
	events  []*leaseholdv1.WatchResponse
	failure error
	alone   bool   // no other owner can receive keys, and no transfers are in progress
	idle    bool   // no transfers are in progress
	lull    string // why loads are not balanced
	old     bool   // version 1, before transfers
	// diskless: there is no store, and the leader, which was elected at 1200, does not
	// respond.
	diskless bool

	// away is the number of status requests that fail after the first one.
	away int
	// clocks are the reported clocks, if any.
	clocks func() *leaseholdv1.Clocks

	mu sync.Mutex
	// unread is the number of further requests during which all namespaces except the first are
	// loading; -1 is all.
	unread     int
	muted      bool // there is no leader
	orders     fakeOrders
	namespaces []*leaseholdv1.NamespaceConfig
	requests   []string // the methods that were called
}

// start serves the fake on a free port until the test ends.
func (f *fakeManager) start(atEnd func(func())) (*fakeManager, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f.addr = listener.Addr().String()
	server := grpc.NewServer(append(wire.ServerOptions(), grpc.UnaryInterceptor(f.intercept))...)
	leaseholdv1.RegisterAdminServiceServer(server, f)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // it ends with Stop
	}()
	atEnd(func() { server.Stop(); <-served })
	return f, nil
}

// startFake starts a fake, and stops it when the test ends.
func startFake(t *testing.T, f *fakeManager) *fakeManager {
	t.Helper()
	f, err := f.start(t.Cleanup)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// intercept records a request, and rejects one of another version or of a method that an old manager does not have.
func (f *fakeManager) intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	f.mu.Lock()
	f.requests = append(f.requests, info.FullMethod[strings.LastIndex(info.FullMethod, "/")+1:])
	f.mu.Unlock()
	if method := info.FullMethod; f.old && (strings.HasSuffix(method, "ListMoves") || strings.HasSuffix(method, "DrainOwner")) {
		return nil, grpcstatus.Errorf(codes.Unimplemented, "unknown method %s for service leasehold.v1.AdminService", method[strings.LastIndex(method, "/")+1:])
	}
	if versioned, ok := request.(interface{ GetVersion() uint32 }); !ok || wire.CheckClient(versioned.GetVersion()) != nil {
		return nil, wire.FromError(leasehold.Errorf("fake", leasehold.ErrInvalid, "", "no version"))
	}
	answer, err := next(ctx, request)
	return answer, wire.FromError(err)
}

// lead makes a muted manager the leader of these namespaces.
func (f *fakeManager) lead(namespaces ...*leaseholdv1.NamespaceConfig) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.muted, f.namespaces = false, namespaces
}

func (f *fakeManager) called() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

// index returns the index of a namespace; the lock is held.
func (f *fakeManager) index(name string) (int, error) {
	i := slices.IndexFunc(f.namespaces, func(n *leaseholdv1.NamespaceConfig) bool { return n.GetName() == name })
	if i < 0 {
		return i, leasehold.Errorf("namespace", leasehold.ErrNotFound, name, "there is no such namespace")
	}
	return i, nil
}

func (f *fakeManager) check(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := f.index(name)
	return err
}

func (f *fakeManager) GetStatus(context.Context, *leaseholdv1.GetStatusRequest) (*leaseholdv1.GetStatusResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.requests); n > 1 && n <= 1+f.away {
		return nil, leasehold.Errorf("status", leasehold.ErrUnavailable, "", "shut down")
	}
	answer := &leaseholdv1.GetStatusResponse{
		Leader: "10.0.0.1:7400", Term: 3, LedFor: int64(2*time.Hour + 13*time.Minute + 5*time.Second),
		Manager: "10.0.0.2:7400", Build: "leasehold v1.2.3", Store: "etcd, embedded, 3 members",
		Ttl: int64(2 * time.Second), Failover: int64(2733 * time.Millisecond),
		Leaderships: []*leaseholdv1.Leadership{{
			At: timestamppb.New(time.Date(2026, 11, 15, 10, 20, 32, 0, time.UTC)), Leader: "10.0.0.1:7400", Term: 3,
		}},
	}
	if f.muted {
		return &leaseholdv1.GetStatusResponse{Manager: "10.0.0.2:7400", Problem: "no manager leads"}, nil
	}
	if f.clocks != nil {
		answer.Clocks = f.clocks()
	}
	if f.diskless {
		answer.LedFor, answer.Warnings = 0, []string{"10.0.0.3:7400 does not vote: it has just started"}
	}
	for i, n := range f.namespaces {
		s := &leaseholdv1.NamespaceStatus{
			Name: n.GetName(), Ready: true, Lsn: 1234, NewestGeneration: 1 << 60, Owners: 2, Ranges: 128, Vacant: 1, Lookups: 7, Moves: 2, Lull: f.lull,
		}
		if i > 0 && f.unread != 0 {
			s = &leaseholdv1.NamespaceStatus{Name: n.GetName(), Problem: "loading its table"}
		}
		answer.Namespaces = append(answer.Namespaces, s)
	}
	f.unread = max(f.unread-1, min(f.unread, 0))
	return answer, nil
}

func (f *fakeManager) ListNamespaces(context.Context, *leaseholdv1.ListNamespacesRequest) (*leaseholdv1.ListNamespacesResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	answer := &leaseholdv1.ListNamespacesResponse{}
	for _, n := range f.namespaces {
		n = proto.CloneOf(n)
		if f.old {
			n.Churn, n.Rebalance, n.Moves, n.MoveTimeout = 0, 0, 0, 0
		}
		answer.Namespaces = append(answer.Namespaces, n)
	}
	return answer, nil
}

func (f *fakeManager) CreateNamespace(_ context.Context, r *leaseholdv1.CreateNamespaceRequest) (*leaseholdv1.CreateNamespaceResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	stored, err := wire.ToNamespace(r.GetNamespace())
	if err != nil {
		return nil, err
	}
	if _, err := f.index(string(stored.Name)); err == nil {
		return nil, leasehold.Errorf("create namespace", leasehold.ErrExists, string(stored.Name), "it exists already")
	}
	f.namespaces = append(f.namespaces, wire.FromNamespace(stored))
	return &leaseholdv1.CreateNamespaceResponse{Namespace: wire.FromNamespace(stored)}, nil
}

func (f *fakeManager) UpdateNamespace(_ context.Context, r *leaseholdv1.UpdateNamespaceRequest) (*leaseholdv1.UpdateNamespaceResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	stored, err := wire.ToNamespace(r.GetNamespace())
	if err != nil {
		return nil, err
	}
	i, err := f.index(string(stored.Name))
	if err != nil {
		return nil, err
	}
	f.namespaces[i] = wire.FromNamespace(stored)
	return &leaseholdv1.UpdateNamespaceResponse{Namespace: f.namespaces[i]}, nil
}

func (f *fakeManager) DeleteNamespace(_ context.Context, r *leaseholdv1.DeleteNamespaceRequest) (*leaseholdv1.DeleteNamespaceResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i, err := f.index(r.GetName())
	if err != nil {
		return nil, err
	}
	f.namespaces = slices.Delete(f.namespaces, i, i+1)
	return &leaseholdv1.DeleteNamespaceResponse{}, nil
}

func holder(name string) *leaseholdv1.Holder {
	session := make([]byte, 16)
	copy(session, name)
	return &leaseholdv1.Holder{Owner: name, Session: session, Addr: name + ":8080", Weight: 1}
}

// heldRanges is the table: server-1 has the lower half, server-2 a quarter, and the rest is
// vacant.
func heldRanges() []*leaseholdv1.HeldRange {
	return []*leaseholdv1.HeldRange{
		{Lease: &leaseholdv1.Lease{Start: 0, Limit: 1 << 63, Generation: 41}, Owner: "server-1", Addr: "server-1:8080"},
		{Lease: &leaseholdv1.Lease{Start: 1 << 63, Limit: 3 << 62, Generation: 42}, Owner: "server-2", Addr: "server-2:8080", Lost: 1200},
		{Lease: &leaseholdv1.Lease{Start: 3 << 62}, Lost: 1234},
	}
}

func (f *fakeManager) ListRanges(r *leaseholdv1.ListRangesRequest, stream grpc.ServerStreamingServer[leaseholdv1.ListRangesResponse]) error {
	if err := f.check(r.GetNamespace()); err != nil {
		return wire.FromError(err)
	}
	f.mu.Lock()
	table := f.table(r.GetOwner())
	f.mu.Unlock()
	for _, held := range table { // one range per message
		if r.GetOwner() != "" && held.GetOwner() != r.GetOwner() {
			continue
		}
		if err := stream.Send(&leaseholdv1.ListRangesResponse{Lsn: 1234, Begun: f.begun(), Ranges: []*leaseholdv1.HeldRange{held}}); err != nil {
			return err
		}
	}
	return nil
}

// begun returns the LSN at which the table begins; 0 with a store.
func (f *fakeManager) begun() uint64 {
	if f.diskless {
		return 1200
	}
	return 0
}

func (f *fakeManager) LookupKey(_ context.Context, r *leaseholdv1.LookupKeyRequest) (*leaseholdv1.LookupKeyResponse, error) {
	answer := &leaseholdv1.LookupKeyResponse{Lsn: 1234, Begun: f.begun()}
	for _, held := range heldRanges() {
		if rangeOf(held.GetLease()).Contains(leasehold.Key(r.GetKey())) {
			answer.Range = held
		}
	}
	return answer, f.check(r.GetNamespace())
}

// past returns the history of the keys of server-2, newest first.
func past() []*leaseholdv1.HistoryEntry {
	lease := &leaseholdv1.Lease{Start: 1 << 63, Limit: 3 << 62, Generation: 42}
	moved := &leaseholdv1.Lease{Start: 1 << 63, Limit: 3 << 62, Generation: 43}
	before := &leaseholdv1.Lease{Start: 1 << 63, Generation: 17}
	at := func(second int) *timestamppb.Timestamp {
		return timestamppb.New(time.Date(2026, 11, 15, 10, 20, second, 5e8, time.UTC))
	}
	return []*leaseholdv1.HistoryEntry{
		{Lsn: 1202, At: at(32), Kind: leaseholdv1.ChangeKind_CHANGE_KIND_MOVED, Lease: moved, Holder: holder("server-3"), From: holder("server-2")},
		{Lsn: 1201, At: at(31), Kind: leaseholdv1.ChangeKind_CHANGE_KIND_GRANTED, Lease: lease, Holder: holder("server-2")},
		{Lsn: 1200, At: at(30), Kind: leaseholdv1.ChangeKind_CHANGE_KIND_VACATED, Lease: before, Holder: holder("server-1"), Cause: leaseholdv1.Cause_CAUSE_EXPIRED},
	}
}

func (f *fakeManager) ListHistory(_ context.Context, r *leaseholdv1.ListHistoryRequest) (*leaseholdv1.ListHistoryResponse, error) {
	answer := &leaseholdv1.ListHistoryResponse{Truncated: true, More: r.GetMost() == 1}
	if r.GetKey() >= 1<<63 {
		entries := past()
		answer.Entries = entries[:min(int(r.GetMost()), len(entries))]
	} else if f.diskless {
		answer.Before = heldRanges()[0]
	}
	return answer, f.check(r.GetNamespace())
}

// ListChanges returns the history of the keys of server-2, which is all.
func (f *fakeManager) ListChanges(_ context.Context, r *leaseholdv1.ListChangesRequest) (*leaseholdv1.ListChangesResponse, error) {
	answer := &leaseholdv1.ListChangesResponse{Truncated: true, Begun: f.begun()}
	for _, e := range past() {
		switch {
		case r.GetBefore() != 0 && e.GetLsn() >= r.GetBefore():
		case len(answer.GetChanges()) == min(int(r.GetMost()), fakePage):
			answer.More, answer.Truncated, answer.Begun = true, false, 0
		default:
			answer.Changes = append(answer.Changes, e)
		}
	}
	return answer, f.check(r.GetNamespace())
}

// fakePage is the maximum number of changes in a response. It is less than the length of the history.
const fakePage = 2

func (f *fakeManager) Watch(r *leaseholdv1.WatchRequest, stream grpc.ServerStreamingServer[leaseholdv1.WatchResponse]) error {
	if r.GetNamespace() != "" {
		if err := f.check(r.GetNamespace()); err != nil {
			return wire.FromError(err)
		}
	}
	for _, event := range f.events {
		if err := stream.Send(event); err != nil {
			return err
		}
	}
	if f.failure != nil {
		return wire.FromError(f.failure)
	}
	<-stream.Context().Done()
	return errors.New("the caller cancelled the stream")
}

func (f *fakeManager) ListMembers(context.Context, *leaseholdv1.ListMembersRequest) (*leaseholdv1.ListMembersResponse, error) {
	return &leaseholdv1.ListMembersResponse{Members: []*leaseholdv1.Member{
		{Id: 0xab, Name: "m1", PeerUrls: []string{"http://10.0.0.1:7402"}, Healthy: true},
		{Id: 0xcd, Name: "m2", PeerUrls: []string{"http://10.0.0.2:7402"}, Learner: true},
	}}, nil
}

func (f *fakeManager) RemoveMember(_ context.Context, r *leaseholdv1.RemoveMemberRequest) (*leaseholdv1.RemoveMemberResponse, error) {
	if r.GetMember() != "m2" {
		return nil, leasehold.Errorf("remove member", leasehold.ErrNotFound, r.GetMember(), "there is no member of this name or id")
	}
	return &leaseholdv1.RemoveMemberResponse{}, nil
}
