package etcd

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
)

// A Member is one manager's embedded store. Its name is empty until it has
// started for the first time.
type Member = store.Member

// probeTimeout is how long a member has to show that it is alive.
const probeTimeout = time.Second

// Members returns the members of the group, after asking each how it is.
func (m *Embedded) Members(ctx context.Context) ([]Member, error) {
	const op = "list members"
	asking, cancel := m.db.request(ctx)
	defer cancel()
	resp, err := m.list(asking)
	if err != nil {
		return nil, m.membersError(op, "", err)
	}
	members := toMembers(resp.Members)
	m.probe(ctx, members)
	return members, nil
}

// list asks for the members, and again while the store changes its leader: somebody asks just
// because a member has died, and that may have been the one that led.
func (m *Embedded) list(ctx context.Context) (*clientv3.MemberListResponse, error) {
	const pause = 100 * time.Millisecond
	for {
		resp, err := m.db.client.MemberList(ctx)
		if known := rpctypes.Error(err); err == nil || !errors.Is(known, rpctypes.ErrLeaderChanged) && !errors.Is(known, rpctypes.ErrNoLeader) {
			return resp, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause):
		}
	}
}

func toMembers(list []*pb.Member) []Member {
	out := make([]Member, len(list))
	for i, one := range list {
		out[i] = Member{ID: one.ID, Name: one.Name, PeerURLs: one.PeerURLs, Learner: one.IsLearner}
	}
	slices.SortFunc(out, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// probe fills in who is healthy. We are; the others must answer.
func (m *Embedded) probe(ctx context.Context, members []Member) {
	trip, err := transport.NewTransport(m.cfg.PeerTLS.info(), probeTimeout)
	if err != nil {
		return // nobody can be asked
	}
	defer trip.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var all sync.WaitGroup
	for i := range members {
		if members[i].ID == uint64(m.server.Server.MemberID()) {
			members[i].Healthy = m.ended() == nil
			continue
		}
		all.Go(func() { members[i].Healthy = answers(ctx, trip, members[i].PeerURLs) })
	}
	all.Wait()
}

func answers(ctx context.Context, trip http.RoundTripper, peers []string) bool {
	return slices.ContainsFunc(peers, func(peer string) bool {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, peer+"/version", http.NoBody)
		if err != nil {
			return false
		}
		resp, err := trip.RoundTrip(req)
		if err != nil {
			return false
		}
		return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	})
}

// AddMember prepares the group for one more member and returns it, and all
// members with it: what the new member starts with as EmbedConfig.Members,
// beside Existing. It does not vote until it has caught up, which the group
// sees to by itself, so that the group is never worse off for a member that
// does not come. Only one member can be on its way at a time; adding that one
// again changes nothing.
func (m *Embedded) AddMember(ctx context.Context, name, peerURL string) (Member, []Member, error) {
	const op = "add member"
	if err := checkPeerURL(name, peerURL); err != nil {
		return Member{}, nil, err
	}
	if m.cfg.PeerURL == "" {
		return Member{}, nil, leasehold.Errorf(op, leasehold.ErrInvalid, name, "this member has no peer URL, so that no other could reach it: start it again with one")
	}
	before, err := m.Members(ctx)
	if err != nil {
		return Member{}, nil, err
	}
	if slices.ContainsFunc(before, func(b Member) bool { return b.Name == name }) {
		return Member{}, nil, leasehold.Errorf(op, leasehold.ErrExists, name, "there is a member of that name: remove it first, or choose another name")
	}
	awaited := func(b Member) bool { return b.Name == "" && slices.Equal(b.PeerURLs, []string{peerURL}) }
	if i := slices.IndexFunc(before, awaited); i >= 0 { // it was added, and has not come yet
		before[i].Name = name
		return before[i], before, nil
	}
	var resp *clientv3.MemberAddResponse
	err = m.reconfigure(ctx, func(ctx context.Context) (err error) {
		resp, err = m.db.client.MemberAddAsLearner(ctx, []string{peerURL})
		return err
	})
	if err != nil {
		return Member{}, nil, m.membersError(op, name, err)
	}
	all := toMembers(resp.Members)
	i := slices.IndexFunc(all, func(one Member) bool { return one.ID == resp.Member.ID })
	all[i].Name = name
	return all[i], all, nil
}

// RemoveMember makes the group smaller by one member, dead or alive, which is
// given by its name or its id in hexadecimal. A member that is removed ends.
func (m *Embedded) RemoveMember(ctx context.Context, nameOrID string) error {
	const op = "remove member"
	members, err := m.Members(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(members, func(one Member) bool {
		return one.Name == nameOrID || strconv.FormatUint(one.ID, 16) == nameOrID
	})
	if i < 0 {
		return leasehold.Errorf(op, leasehold.ErrNotFound, nameOrID, "no member has this name or id")
	}
	if len(members) == 1 {
		return leasehold.Errorf(op, leasehold.ErrInvalid, nameOrID, "it is the last member: without it the group's data is gone")
	}
	err = m.reconfigure(ctx, func(ctx context.Context) error {
		_, err := m.db.client.MemberRemove(ctx, members[i].ID)
		return err
	})
	if err != nil {
		return m.membersError(op, nameOrID, err)
	}
	return nil
}

// mistrust is for how long etcd lets nobody change the group after its members
// have met, and a bit: it waits for connections to last.
const mistrust = 6 * time.Second

// reconfigure makes a change of the group. If etcd refuses it because too few
// members are connected, it tries for as long as that may come from the group
// being young, unless the context ends before.
func (m *Embedded) reconfigure(ctx context.Context, change func(context.Context) error) error {
	const pause = 250 * time.Millisecond
	again := time.NewTicker(pause)
	defer again.Stop()
	limit := time.Now().Add(mistrust)
	if end, ok := ctx.Deadline(); ok && end.Before(limit) {
		limit = end.Add(-2 * pause) // whoever asked is to hear why
	}
	for {
		asking, cancel := m.db.request(ctx)
		err := change(asking)
		cancel()
		if !errors.Is(rpctypes.Error(err), rpctypes.ErrUnhealthy) {
			return err
		}
		err = leasehold.Errorf("etcd", leasehold.ErrUnavailable, "",
			"%w: too few members are connected to change the group; start those that are down, or try again in a few seconds", err)
		select {
		case <-ctx.Done():
			return err
		case <-again.C:
		}
		if time.Now().After(limit) {
			return err
		}
	}
}

// moveTo tells the group where this member is reached, if that has changed
// since it was last started. Without a URL it stays where it was.
func (m *Embedded) moveTo(ctx context.Context, peerURL string) error {
	self := m.server.Server.Cluster().Member(m.server.Server.MemberID())
	if peerURL == "" || self == nil || slices.Equal(self.PeerURLs, []string{peerURL}) {
		return nil
	}
	ctx, cancel := m.db.request(ctx)
	defer cancel()
	_, err := m.db.client.MemberUpdate(ctx, uint64(self.ID), []string{peerURL})
	if err != nil {
		return m.membersError("move member", m.cfg.Name, err)
	}
	return nil
}

func (m *Embedded) membersError(op, subject string, err error) error {
	err = m.db.failed(err)
	return &leasehold.Error{Op: op, Kind: leasehold.KindOf(err), Subject: subject, Err: err}
}
