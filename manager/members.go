package manager

import (
	"context"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// members returns the membership of the embedded store, or an error if the store is not embedded.
func (s *adminService) members(version uint32) (store.Members, error) {
	if err := wire.CheckClient(version); err != nil {
		return nil, err
	}
	if s.m.group != nil {
		return nil, leasehold.Errorf("members", leasehold.ErrInvalid, s.m.cfg.Advertise,
			"the members of a diskless group cannot change: stop all managers, and start them with other --peers")
	}
	if s.m.cfg.Members == nil {
		return nil, leasehold.Errorf("members", leasehold.ErrInvalid, s.m.cfg.Advertise,
			"the store is not embedded in the managers (it is %s): use its own tools", s.m.cfg.StoreName)
	}
	return s.m.cfg.Members, nil
}

// ListMembers returns the managers whose embedded stores form the group.
func (s *adminService) ListMembers(ctx context.Context, r *leaseholdv1.ListMembersRequest) (*leaseholdv1.ListMembersResponse, error) {
	members, err := s.members(r.GetVersion())
	if err != nil {
		return nil, wire.FromError(err)
	}
	list, err := members.Members(ctx)
	if err != nil {
		return nil, wire.FromError(err)
	}
	return &leaseholdv1.ListMembersResponse{Members: fromMembers(list)}, nil
}

// AddMember adds a member to the group, before its manager starts. Any manager serves it.
func (s *adminService) AddMember(ctx context.Context, r *leaseholdv1.AddMemberRequest) (*leaseholdv1.AddMemberResponse, error) {
	members, err := s.members(r.GetVersion())
	if err != nil {
		return nil, wire.FromError(err)
	}
	added, err := members.AddMember(ctx, r.GetName(), r.GetPeerUrl())
	if err != nil {
		return nil, wire.FromError(err)
	}
	s.m.log.Info("a member was added to the group", "name", r.GetName(), "peer", r.GetPeerUrl())
	list, err := members.Members(ctx)
	if err != nil {
		return nil, wire.FromError(err)
	}
	return &leaseholdv1.AddMemberResponse{Member: fromMember(added), Members: fromMembers(list), Cluster: members.Cluster()}, nil
}

// RemoveMember removes a member from the group.
func (s *adminService) RemoveMember(ctx context.Context, r *leaseholdv1.RemoveMemberRequest) (*leaseholdv1.RemoveMemberResponse, error) {
	members, err := s.members(r.GetVersion())
	if err != nil {
		return nil, wire.FromError(err)
	}
	if err := members.RemoveMember(ctx, r.GetMember()); err != nil {
		return nil, wire.FromError(err)
	}
	s.m.log.Info("a member was removed from the group", "member", r.GetMember())
	return &leaseholdv1.RemoveMemberResponse{}, nil
}

func fromMember(m store.Member) *leaseholdv1.Member {
	return &leaseholdv1.Member{Id: m.ID, Name: m.Name, PeerUrls: m.PeerURLs, Learner: m.Learner, Healthy: m.Healthy}
}

func fromMembers(list []store.Member) []*leaseholdv1.Member {
	out := make([]*leaseholdv1.Member, len(list))
	for i := range list {
		out[i] = fromMember(list[i])
	}
	return out
}
