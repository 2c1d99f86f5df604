package manager

import (
	"context"
	"slices"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	pb "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// Admin returns the admin service for callers in this process. It is called without a connection,
// is safe for concurrent use, and works until the manager has ended. If the manager has a policy
// (Config.Access), each call requires a context from access.WithCaller, and has that caller's
// permissions. The service uses only Send and Context of a stream.
func (m *Manager) Admin() pb.AdminServiceServer {
	all := &adminService{m: m}
	if m.cfg.Access == nil {
		return all
	}
	return &localAdmin{all: all}
}

// visible returns a function that reports whether the caller may see a namespace.
func (m *Manager) visible(ctx context.Context) func(leasehold.Namespace) bool {
	if m.cfg.Access == nil {
		return func(leasehold.Namespace) bool { return true }
	}
	return m.cfg.Access.Visible(ctx)
}

// hide removes the namespaces from a status that the caller may not see.
func (m *Manager) hide(ctx context.Context, answer *pb.GetStatusResponse) {
	visible := m.visible(ctx)
	answer.Namespaces = slices.DeleteFunc(answer.GetNamespaces(), func(n *pb.NamespaceStatus) bool {
		return !visible(leasehold.Namespace(n.GetName()))
	})
}

// localAdmin applies the policy to calls in this process.
type localAdmin struct {
	pb.UnimplementedAdminServiceServer
	all *adminService
}

// local executes a unary call.
func local[Req, Resp any](ctx context.Context, l *localAdmin, method string, r *Req,
	call func(*adminService, context.Context, *Req) (*Resp, error),
) (answer *Resp, err error) {
	err = l.all.m.cfg.Access.Serve(ctx, method, r, func(ctx context.Context) (err error) {
		answer, err = call(l.all, ctx, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// localStream executes a streaming call.
func localStream[Req, Resp any](l *localAdmin, method string, r *Req, stream grpc.ServerStreamingServer[Resp],
	call func(*adminService, *Req, grpc.ServerStreamingServer[Resp]) error,
) error {
	return l.all.m.cfg.Access.Serve(stream.Context(), method, r, func(ctx context.Context) error {
		return call(l.all, r, &streamWithin[Resp]{stream, ctx})
	})
}

// A streamWithin is a stream with another context.
type streamWithin[Resp any] struct {
	grpc.ServerStreamingServer[Resp]
	ctx context.Context //nolint:containedctx // it is the stream's
}

func (s *streamWithin[Resp]) Context() context.Context { return s.ctx }

func (l *localAdmin) GetStatus(ctx context.Context, r *pb.GetStatusRequest) (*pb.GetStatusResponse, error) {
	return local(ctx, l, pb.AdminService_GetStatus_FullMethodName, r, (*adminService).GetStatus)
}

func (l *localAdmin) ListNamespaces(ctx context.Context, r *pb.ListNamespacesRequest) (*pb.ListNamespacesResponse, error) {
	return local(ctx, l, pb.AdminService_ListNamespaces_FullMethodName, r, (*adminService).ListNamespaces)
}

func (l *localAdmin) CreateNamespace(ctx context.Context, r *pb.CreateNamespaceRequest) (*pb.CreateNamespaceResponse, error) {
	return local(ctx, l, pb.AdminService_CreateNamespace_FullMethodName, r, (*adminService).CreateNamespace)
}

func (l *localAdmin) UpdateNamespace(ctx context.Context, r *pb.UpdateNamespaceRequest) (*pb.UpdateNamespaceResponse, error) {
	return local(ctx, l, pb.AdminService_UpdateNamespace_FullMethodName, r, (*adminService).UpdateNamespace)
}

func (l *localAdmin) DeleteNamespace(ctx context.Context, r *pb.DeleteNamespaceRequest) (*pb.DeleteNamespaceResponse, error) {
	return local(ctx, l, pb.AdminService_DeleteNamespace_FullMethodName, r, (*adminService).DeleteNamespace)
}

func (l *localAdmin) ListOwners(ctx context.Context, r *pb.ListOwnersRequest) (*pb.ListOwnersResponse, error) {
	return local(ctx, l, pb.AdminService_ListOwners_FullMethodName, r, (*adminService).ListOwners)
}

func (l *localAdmin) LookupKey(ctx context.Context, r *pb.LookupKeyRequest) (*pb.LookupKeyResponse, error) {
	return local(ctx, l, pb.AdminService_LookupKey_FullMethodName, r, (*adminService).LookupKey)
}

func (l *localAdmin) ListHistory(ctx context.Context, r *pb.ListHistoryRequest) (*pb.ListHistoryResponse, error) {
	return local(ctx, l, pb.AdminService_ListHistory_FullMethodName, r, (*adminService).ListHistory)
}

func (l *localAdmin) ListChanges(ctx context.Context, r *pb.ListChangesRequest) (*pb.ListChangesResponse, error) {
	return local(ctx, l, pb.AdminService_ListChanges_FullMethodName, r, (*adminService).ListChanges)
}

func (l *localAdmin) ListHotKeys(ctx context.Context, r *pb.ListHotKeysRequest) (*pb.ListHotKeysResponse, error) {
	return local(ctx, l, pb.AdminService_ListHotKeys_FullMethodName, r, (*adminService).ListHotKeys)
}

func (l *localAdmin) ListLookups(ctx context.Context, r *pb.ListLookupsRequest) (*pb.ListLookupsResponse, error) {
	return local(ctx, l, pb.AdminService_ListLookups_FullMethodName, r, (*adminService).ListLookups)
}

func (l *localAdmin) DrainOwner(ctx context.Context, r *pb.DrainOwnerRequest) (*pb.DrainOwnerResponse, error) {
	return local(ctx, l, pb.AdminService_DrainOwner_FullMethodName, r, (*adminService).DrainOwner)
}

func (l *localAdmin) MoveRange(ctx context.Context, r *pb.MoveRangeRequest) (*pb.MoveRangeResponse, error) {
	return local(ctx, l, pb.AdminService_MoveRange_FullMethodName, r, (*adminService).MoveRange)
}

func (l *localAdmin) Rebalance(ctx context.Context, r *pb.RebalanceRequest) (*pb.RebalanceResponse, error) {
	return local(ctx, l, pb.AdminService_Rebalance_FullMethodName, r, (*adminService).Rebalance)
}

func (l *localAdmin) ListMoves(ctx context.Context, r *pb.ListMovesRequest) (*pb.ListMovesResponse, error) {
	return local(ctx, l, pb.AdminService_ListMoves_FullMethodName, r, (*adminService).ListMoves)
}

func (l *localAdmin) ListMembers(ctx context.Context, r *pb.ListMembersRequest) (*pb.ListMembersResponse, error) {
	return local(ctx, l, pb.AdminService_ListMembers_FullMethodName, r, (*adminService).ListMembers)
}

func (l *localAdmin) AddMember(ctx context.Context, r *pb.AddMemberRequest) (*pb.AddMemberResponse, error) {
	return local(ctx, l, pb.AdminService_AddMember_FullMethodName, r, (*adminService).AddMember)
}

func (l *localAdmin) RemoveMember(ctx context.Context, r *pb.RemoveMemberRequest) (*pb.RemoveMemberResponse, error) {
	return local(ctx, l, pb.AdminService_RemoveMember_FullMethodName, r, (*adminService).RemoveMember)
}

func (l *localAdmin) ListRanges(r *pb.ListRangesRequest, stream grpc.ServerStreamingServer[pb.ListRangesResponse]) error {
	return localStream(l, pb.AdminService_ListRanges_FullMethodName, r, stream, (*adminService).ListRanges)
}

func (l *localAdmin) Watch(r *pb.WatchRequest, stream grpc.ServerStreamingServer[pb.WatchResponse]) error {
	return localStream(l, pb.AdminService_Watch_FullMethodName, r, stream, (*adminService).Watch)
}
