package manager

import (
	"context"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// members returns who keeps the store, or says that the managers do not.
func (s *adminService) members(version uint32) (store.Members, error) {
	if err := wire.CheckVersion(version); err != nil {
		return nil, err
	}
	if s.m.group != nil {
		return nil, leasehold.Errorf("members", leasehold.ErrInvalid, s.m.cfg.Advertise,
			"these managers keep nothing on disk, and are the same for as long as the group lasts: stop all of them, and start them with other --peers")
	}
	if s.m.cfg.Members == nil {
		return nil, leasehold.Errorf("members", leasehold.ErrInvalid, s.m.cfg.Advertise,
			"these managers do not keep the store themselves (it is %s): use its own tools", s.m.cfg.StoreName)
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

// AddMember prepares the group for one more. Any member can.
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

// RemoveMember makes the group smaller by one.
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
