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
	return read(ctx, c, func(ctx context.Context, s service) ([]Member, error) {
		answer, err := s.ListMembers(ctx, &leaseholdv1.ListMembersRequest{Version: wire.Version})
		return convert(answer.GetMembers(), func(m *leaseholdv1.Member) Member {
			return Member{
				ID: Point(m.GetId()), Name: m.GetName(), PeerURLs: append([]string{}, m.GetPeerUrls()...),
				Learner: m.GetLearner(), Healthy: m.GetHealthy(),
			}
		}), err
	})
}

// RemoveMember removes a manager from the group, by its name or its id.
func (c *Client) RemoveMember(ctx context.Context, member string) error {
	return c.change(ctx, func(ctx context.Context, s service) error {
		_, err := s.RemoveMember(ctx, &leaseholdv1.RemoveMemberRequest{Version: wire.Version, Member: member})
		return err
	})
}

// A HotKey is a key with much load.
type HotKey struct {
	Key   Point   `json:"key"`
	Rate  float64 `json:"rate"` // work per second
	Owner string  `json:"owner"`
}

// HotKeys returns up to most keys of a namespace, the hottest first.
func (c *Client) HotKeys(ctx context.Context, namespace string, most uint32) ([]HotKey, error) {
	return read(ctx, c, func(ctx context.Context, s service) ([]HotKey, error) {
		answer, err := s.ListHotKeys(ctx, &leaseholdv1.ListHotKeysRequest{Version: wire.Version, Namespace: namespace, Most: most})
		return convert(answer.GetKeys(), func(k *leaseholdv1.HotKey) HotKey {
			return HotKey{Point(k.GetKey()), k.GetRate(), k.GetOwner()}
		}), err
	})
}

// Lookups are the lookups of a namespace that are connected to one manager.
type Lookups struct {
	Total   uint32   `json:"total"`
	Lookups []Lookup `json:"lookups"` // the longest-connected first; at most 1024
	// Autosharding is nil if there was no client since the manager's start.
	Autosharding *Autosharding `json:"autosharding,omitempty"`
}

// Autosharding are the auto-sharding clients of a namespace at one manager, and its counters since the start.
type Autosharding struct {
	Clients     uint32 `json:"clients"`
	Sent        uint64 `json:"sent"` // assignments
	Accepted    uint64 `json:"accepted"`
	Rejected    uint64 `json:"rejected"`
	LoadReports uint64 `json:"loadReports"`
	Rejection   string `json:"rejection,omitempty"` // the last one: the client and its reason
}

func autoshardingOf(s *leaseholdv1.AutoshardingStatus) *Autosharding {
	if s == nil {
		return nil
	}
	return &Autosharding{s.GetClients(), s.GetSent(), s.GetAccepted(), s.GetRejected(), s.GetLoadReports(), s.GetRejection()}
}

// A Lookup is one connected lookup.
type Lookup struct {
	Addr      string        `json:"addr"`
	Connected Seconds       `json:"connectedSeconds"`
	HeardAgo  Seconds       `json:"heardAgoSeconds"`
	LSN       leasehold.LSN `json:"lsn,string"` // at its last request
	Behind    uint64        `json:"behind"`     // missing changes at that time
}

// Lookups returns the lookups that are connected to the responding manager.
func (c *Client) Lookups(ctx context.Context, namespace string) (Lookups, error) {
	return read(ctx, c, func(ctx context.Context, s service) (Lookups, error) {
		answer, err := s.ListLookups(ctx, &leaseholdv1.ListLookupsRequest{Version: wire.Version, Namespace: namespace})
		return Lookups{answer.GetTotal(), convert(answer.GetLookups(), lookupOf), autoshardingOf(answer.GetAutosharding())}, err
	})
}

func lookupOf(l *leaseholdv1.LookupStatus) Lookup {
	return Lookup{
		Addr: l.GetAddr(), Connected: Seconds(l.GetConnectedFor()), HeardAgo: Seconds(l.GetHeard()),
		LSN: leasehold.LSN(l.GetLsn()), Behind: l.GetBehind(),
	}
}

// Moves are the moves of state in a namespace, in progress first, the oldest before the others.
type Moves struct {
	Namespace string `json:"namespace"`
	UnderWay  uint32 `json:"underWay"`
	Waiting   uint32 `json:"waiting"`
	Moves     []Move `json:"moves"` // at most 4096
}

// The states of a Move.
const (
	MoveWaiting = "waiting" // its source or target is at its limit of moves
	MoveBegun   = "begun"   // the source has not reported it
	MoveCopying = "copying" // the source serves the range, and copies
	MoveStopped = "stopped" // the source has stopped serving the range, and sends the rest
)

// A Move is a range whose state is sent from one owner to another. From an owner to itself, it merges
// adjacent leases.
type Move struct {
	ID string `json:"id,omitempty"` // "" while it waits
	Interval
	Share    float64 `json:"share"`
	From     string  `json:"from"`
	To       string  `json:"to"`
	State    string  `json:"state"` // MoveWaiting, ...
	Records  uint64  `json:"records"`
	Bytes    uint64  `json:"bytes"`
	Age      Seconds `json:"ageSeconds"`
	Patience Seconds `json:"patienceSeconds"`  // until it fails, without progress
	Reason   string  `json:"reason,omitempty"` // as in Change
}

// Moves returns the moves of a namespace.
func (c *Client) Moves(ctx context.Context, namespace string) (Moves, error) {
	return read(ctx, c, func(ctx context.Context, s service) (Moves, error) {
		return moves(ctx, s, namespace)
	})
}

func moves(ctx context.Context, s service, namespace string) (Moves, error) {
	answer, err := s.ListMoves(ctx, &leaseholdv1.ListMovesRequest{Version: wire.Version, Namespace: namespace})
	return Moves{namespace, answer.GetUnderWay(), answer.GetWaiting(), convert(answer.GetMoves(), moveOf)}, err
}

func moveOf(m *leaseholdv1.MoveStatus) Move {
	keys := intervalOf(m.GetStart(), m.GetLimit())
	out := Move{
		ID: m.GetId(), Interval: keys, Share: keys.Share(), From: m.GetFrom(), To: m.GetTo(),
		State: optionalName(m.GetState(), "MOVE_STATE_"), Records: m.GetRecords(), Bytes: m.GetBytes(),
		Age: Seconds(m.GetAge()), Patience: Seconds(m.GetPatience()), Reason: optionalName(m.GetReason(), "REASON_"),
	}
	switch {
	case out.ID == "":
		out.State = MoveWaiting
	case out.State == "":
		out.State = MoveBegun
	}
	return out
}

// A sentTally is the sum of the bytes that observed moves have sent.
type sentTally map[string]uint64 // by id

// add adds the moves for which wanted is true. It returns their number and the total of bytes.
func (t sentTally) add(all Moves, wanted func(Move) bool) (count int, sent uint64) {
	for _, m := range all.Moves {
		if !wanted(m) {
			continue
		}
		count++
		if m.ID != "" {
			t[m.ID] = max(t[m.ID], m.Bytes)
		}
	}
	for _, bytes := range t {
		sent += bytes
	}
	return count, sent
}
