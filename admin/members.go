package admin

import (
	"context"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A Member is the embedded store of one manager.
type Member struct {
	ID       Point    `json:"id"`
	Name     string   `json:"name"`
	PeerURLs []string `json:"peerUrls"`
	Learner  bool     `json:"learner"` // it has not caught up yet, and does not vote
	Healthy  bool     `json:"healthy"`
}

// Members returns the managers whose embedded stores form the group; none if the store is external.
func (c *Client) Members(ctx context.Context) ([]Member, error) {
	return read(ctx, c, func(ctx context.Context, s leaseholdv1.AdminServiceClient) ([]Member, error) {
		answer, err := s.ListMembers(ctx, &leaseholdv1.ListMembersRequest{Version: wire.Version})
		return membersOf(answer), err
	})
}

func membersOf(answer *leaseholdv1.ListMembersResponse) []Member {
	members := []Member{}
	for _, m := range answer.GetMembers() {
		members = append(members, Member{
			ID: Point(m.GetId()), Name: m.GetName(), PeerURLs: append([]string{}, m.GetPeerUrls()...),
			Learner: m.GetLearner(), Healthy: m.GetHealthy(),
		})
	}
	return members
}

// RemoveMember removes a manager from the group, by its name or its id.
func (c *Client) RemoveMember(ctx context.Context, member string) error {
	return c.change(ctx, func(ctx context.Context, s leaseholdv1.AdminServiceClient) error {
		_, err := s.RemoveMember(ctx, &leaseholdv1.RemoveMemberRequest{Version: wire.Version, Member: member})
		return err
	})
}

// A HotKey is a key that costs its owner much.
type HotKey struct {
	Key   Point   `json:"key"`
	Rate  float64 `json:"rate"` // work per second
	Owner string  `json:"owner"`
}

// HotKeys returns up to most keys of a namespace, the hottest first.
func (c *Client) HotKeys(ctx context.Context, namespace string, most uint32) ([]HotKey, error) {
	return read(ctx, c, func(ctx context.Context, s leaseholdv1.AdminServiceClient) ([]HotKey, error) {
		answer, err := s.ListHotKeys(ctx, &leaseholdv1.ListHotKeysRequest{Version: wire.Version, Namespace: namespace, Most: most})
		return hotKeysOf(answer), err
	})
}

func hotKeysOf(answer *leaseholdv1.ListHotKeysResponse) []HotKey {
	keys := []HotKey{}
	for _, k := range answer.GetKeys() {
		keys = append(keys, HotKey{Point(k.GetKey()), k.GetRate(), k.GetOwner()})
	}
	return keys
}

// Lookups are the lookups of a namespace that are connected to one manager.
type Lookups struct {
	Total   uint32   `json:"total"`
	Lookups []Lookup `json:"lookups"` // the longest connected first; at most 1024
}

// A Lookup is one of them.
type Lookup struct {
	Addr      string        `json:"addr"`
	Connected Seconds       `json:"connectedSeconds"`
	HeardAgo  Seconds       `json:"heardAgoSeconds"`
	LSN       leasehold.LSN `json:"lsn,string"` // that it had at its last request
	Behind    uint64        `json:"behind"`     // changes that it lacked then
}

// Lookups returns the lookups that are connected to the manager that answers.
func (c *Client) Lookups(ctx context.Context, namespace string) (Lookups, error) {
	return read(ctx, c, func(ctx context.Context, s leaseholdv1.AdminServiceClient) (Lookups, error) {
		answer, err := s.ListLookups(ctx, &leaseholdv1.ListLookupsRequest{Version: wire.Version, Namespace: namespace})
		return lookupsOf(answer), err
	})
}

func lookupsOf(answer *leaseholdv1.ListLookupsResponse) Lookups {
	all := Lookups{Total: answer.GetTotal(), Lookups: []Lookup{}}
	for _, l := range answer.GetLookups() {
		all.Lookups = append(all.Lookups, Lookup{
			Addr: l.GetAddr(), Connected: Seconds(l.GetConnectedFor()), HeardAgo: Seconds(l.GetHeard()),
			LSN: leasehold.LSN(l.GetLsn()), Behind: l.GetBehind(),
		})
	}
	return all
}
