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

// A Member is the embedded store of one manager. Its name is empty before its first start.
type Member = store.Member

// probeTimeout is the timeout of a health check.
const probeTimeout = time.Second

// Members returns the members of the group, with the result of a health check of each.
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

// list requests the members, and retries during an election of the store: a caller often lists
// members because one has failed, which may have been the leader.
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

// probe checks the health of the other members; this one is healthy.
func (m *Embedded) probe(ctx context.Context, members []Member) {
	trip, err := transport.NewTransport(m.cfg.PeerTLS.info(), probeTimeout)
	if err != nil {
		return // there is no transport to check with
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

// AddMember adds a member to the group as a learner. It returns the member, and all members
// for [EmbedConfig.Members] of the new one, which starts with Existing. The learner is promoted
// automatically when it has caught up, so a member that never starts does not affect the quorum.
// Only one member can be joining at a time; adding the same one again changes nothing.
func (m *Embedded) AddMember(ctx context.Context, name, peerURL string) (Member, []Member, error) {
	const op = "add member"
	if err := checkPeerURL(name, peerURL); err != nil {
		return Member{}, nil, err
	}
	if m.cfg.PeerURL == "" {
		return Member{}, nil, leasehold.Errorf(op, leasehold.ErrInvalid, name, "this member has no peer URL, which the others need to connect: restart it with one")
	}
	before, err := m.Members(ctx)
	if err != nil {
		return Member{}, nil, err
	}
	if slices.ContainsFunc(before, func(b Member) bool { return b.Name == name }) {
		return Member{}, nil, leasehold.Errorf(op, leasehold.ErrExists, name, "a member with this name exists: remove it first, or choose another name")
	}
	awaited := func(b Member) bool { return b.Name == "" && slices.Equal(b.PeerURLs, []string{peerURL}) }
	if i := slices.IndexFunc(before, awaited); i >= 0 { // it was added, and has not started yet
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

// RemoveMember removes a member, which may be down, by its name or its id in hexadecimal. The
// removed member stops.
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
		return leasehold.Errorf(op, leasehold.ErrInvalid, nameOrID, "it is the last member: its removal would lose the group's data")
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

// stabilizeTime is a little longer than the time for which etcd rejects membership changes after
// its members have connected.
const stabilizeTime = 6 * time.Second

// reconfigure changes the membership. While etcd rejects the change because too few members are
// connected, it retries for the stabilize time, or until the context ends.
func (m *Embedded) reconfigure(ctx context.Context, change func(context.Context) error) error {
	const pause = 250 * time.Millisecond
	again := time.NewTicker(pause)
	defer again.Stop()
	limit := time.Now().Add(stabilizeTime)
	if end, ok := ctx.Deadline(); ok && end.Before(limit) {
		limit = end.Add(-2 * pause) // leave time to return the cause
	}
	for {
		asking, cancel := m.db.request(ctx)
		err := change(asking)
		cancel()
		if !errors.Is(rpctypes.Error(err), rpctypes.ErrUnhealthy) {
			return err
		}
		err = leasehold.Errorf("etcd", leasehold.ErrUnavailable, "",
			"%w: too few members are connected for a membership change; start the members that are down, or retry in a few seconds", err)
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

// moveTo updates this member's peer URL in the group if it has changed since the last start.
// Without a URL the old one stays.
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
