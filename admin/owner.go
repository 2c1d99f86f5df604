package admin

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// Owners are the sessions of a namespace at the leader, sorted by name.
type Owners struct {
	Namespace string        `json:"namespace"`
	LSN       leasehold.LSN `json:"lsn,string"`
	Owners    []Owner       `json:"owners"`
}

// States of a session.
const (
	OwnerMember  = "member"  // a member of the namespace
	OwnerGreeted = "greeted" // it has sent a message, but not acknowledged one
	OwnerWaiting = "waiting" // another session has its name
	OwnerSilent  = "silent"  // it holds leases, and this leader has not received a message from it
)

// An Owner is one session of an owner.
type Owner struct {
	Owner    string  `json:"owner"`
	Session  string  `json:"session"`
	Addr     string  `json:"addr"`
	Weight   float64 `json:"weight"`
	State    string  `json:"state"` // OwnerMember, ...
	Leases   uint32  `json:"leases"`
	Share    float64 `json:"share"`           // of the key space, 0 to 1
	Load     float64 `json:"load"`            // work per second, as the owner reports it
	Patience Seconds `json:"patienceSeconds"` // how long it may still be silent

	Draining   bool   `json:"draining"`             // ordered by an operator
	Leaving    bool   `json:"leaving"`              // draining before it leaves
	Suspended  bool   `json:"suspended"`            // its leases have passed their deadline and are suspended
	MovesState *bool  `json:"movesState,omitempty"` // nil if the leader's version does not report it
	MovesIn    uint32 `json:"movesIn"`              // in progress
	MovesOut   uint32 `json:"movesOut"`

	// Supervised: a crash of its process ends its leases at once (see 'leasehold run'), not when they expire.
	Supervised *bool `json:"supervised,omitempty"` // nil if the leader's version does not report it
}

// movesSince is the first protocol version with moves of state. Managers of older versions omit the
// version.
const movesSince = 2

// Owners returns the sessions of a namespace.
func (c *Client) Owners(ctx context.Context, namespace string) (Owners, error) {
	return read(ctx, c, func(ctx context.Context, s service) (Owners, error) {
		return owners(ctx, s, namespace)
	})
}

func owners(ctx context.Context, s service, namespace string) (Owners, error) {
	answer, err := s.ListOwners(ctx, &leaseholdv1.ListOwnersRequest{Version: wire.Version, Namespace: namespace})
	if err != nil {
		return Owners{}, err
	}
	all := convert(answer.GetOwners(), func(o *leaseholdv1.OwnerStatus) Owner { return ownerOf(o, answer.GetVersion() >= movesSince) })
	slices.SortStableFunc(all, func(a, b Owner) int { return strings.Compare(a.Owner, b.Owner) })
	return Owners{namespace, leasehold.LSN(answer.GetLsn()), all}, nil
}

func ownerOf(o *leaseholdv1.OwnerStatus, knowsMoves bool) Owner {
	h := o.GetHolder()
	out := Owner{
		Owner: h.GetOwner(), Session: sessionOf(h), Addr: h.GetAddr(), Weight: h.GetWeight(),
		State: enumName(o.GetState(), "OWNER_STATE_"), Leases: o.GetLeases(), Share: o.GetShare(), Load: o.GetLoad(),
		Patience: Seconds(o.GetPatience()), Draining: o.GetDraining(), Leaving: o.GetParting(), Suspended: o.GetSuspended(),
		MovesIn: o.GetMovesIn(), MovesOut: o.GetMovesOut(), Supervised: o.Supervised,
	}
	if knowsMoves {
		out.MovesState = new(o.GetMovesState())
	}
	return out
}

// CanMoveState reports whether the owner has reported that it can move state.
func (o Owner) CanMoveState() bool { return o.MovesState != nil && *o.MovesState }

// IsSupervised reports whether the leader has reported that the owner has a supervisor.
func (o Owner) IsSupervised() bool { return o.Supervised != nil && *o.Supervised }

// Late reports whether a member has been silent for more than two renewals of its namespace.
func (o Owner) Late(n Namespace) bool {
	hold := float64(n.Lease) * n.Drift
	return hold > 0 && o.State == OwnerMember && float64(o.Patience) < hold-2*float64(n.Renew)
}

// Find returns the session with a name: the member, if there are several.
func (all Owners) Find(name string) (Owner, bool) {
	found := -1
	for i, o := range all.Owners {
		if o.Owner == name && (found < 0 || o.State == OwnerMember) {
			found = i
		}
	}
	if found < 0 {
		return Owner{}, false
	}
	return all.Owners[found], true
}

// othersTake reports whether another owner can take keys.
func (all Owners) othersTake(name string) bool {
	return slices.ContainsFunc(all.Owners, func(o Owner) bool {
		takesPart := o.State == OwnerMember || o.State == OwnerSilent
		return takesPart && o.Owner != name && !o.Draining && !o.Leaving
	})
}

// longestPatience is the longest time that the leader may wait for a silent owner.
func (all Owners) longestPatience() time.Duration {
	if len(all.Owners) == 0 {
		return 0
	}
	return time.Duration(slices.MaxFunc(all.Owners, func(a, b Owner) int { return cmp.Compare(a.Patience, b.Patience) }).Patience)
}
