package wire

import (
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/partition"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// What a namespace gets that asks for nothing else.
const (
	DefaultChurn       = 0.09
	DefaultRebalance   = 10 * time.Second
	DefaultMoves       = 4
	DefaultMoveTimeout = time.Minute
)

// Bounds on how much is moved, and how.
const (
	leastPeriod = time.Second
	mostPeriod  = 24 * time.Hour
)

// UnnamedPolicy is the policy of a namespace that is stored without the name of
// one: it was created when there was no other.
func UnnamedPolicy() string { return partition.Consistent{}.Name() }

// hasVirtualNodes reports whether a policy divides keys by virtual nodes.
func hasVirtualNodes(policy string) bool {
	return policy == partition.Consistent{}.Name() || policy == partition.Adaptive{}.Name()
}

// readPolicy reads how keys are divided. A setting that the policy does not
// have is an error, since whoever made it expects something of it.
func readPolicy(out *storage.Namespace, c *leaseholdv1.NamespaceConfig) error {
	bad := func(format string, args ...any) error {
		return leasehold.Errorf(opNamespace, leasehold.ErrInvalid, string(out.Name), format, args...)
	}
	static := partition.Static{}.Name()
	out.Policy = c.GetPolicy()
	if out.Policy == "" {
		out.Policy = partition.DefaultName
	}
	nodes := c.GetVirtualNodes()
	switch {
	case !slices.Contains(partition.Names(), out.Policy):
		return bad("policy is %q, want one of %s", clip(out.Policy), strings.Join(partition.Names(), ", "))
	case !hasVirtualNodes(out.Policy) && nodes != 0:
		return bad("policy %s has no virtual nodes: leave them out or use %s or %s",
			out.Policy, partition.Consistent{}.Name(), partition.Adaptive{}.Name())
	case nodes > partition.MaxVirtualNodes:
		return bad("%d virtual nodes, want at most %d", nodes, partition.MaxVirtualNodes)
	case out.Policy != static && len(c.GetStatic()) > 0:
		return bad("policy %s has no static slots: leave them out or use %s", out.Policy, static)
	case out.Policy == static:
		return readStatic(out, c.GetStatic())
	case hasVirtualNodes(out.Policy):
		out.VirtualNodes = orUsual(int(nodes), partition.DefaultVirtualNodes)
	}
	return nil
}

func readStatic(out *storage.Namespace, list []*leaseholdv1.StaticSlot) error {
	if len(list) > MaxStaticSlots {
		return leasehold.Errorf(opNamespace, leasehold.ErrLimit, string(out.Name), "%d static slots, at most %d are allowed", len(list), MaxStaticSlots)
	}
	slots := make([]partition.Slot, len(list))
	for i, s := range list {
		slots[i] = partition.Slot{Start: leasehold.Key(s.GetStart()), Owner: leasehold.OwnerID(s.GetOwner())}
	}
	policy, err := partition.NewStatic(slots)
	if err != nil {
		return &leasehold.Error{Op: opNamespace, Kind: leasehold.ErrInvalid, Subject: string(out.Name), Err: err}
	}
	out.Static = make([]storage.StaticSlot, len(policy.Slots))
	for i, s := range policy.Slots {
		out.Static[i] = storage.StaticSlot{Start: s.Start, Owner: s.Owner}
	}
	return nil
}

// readMoving reads how much is moved, and how. Any policy may have been replaced
// by one of the manager's own: so these are settings of all of them.
func readMoving(out *storage.Namespace, c *leaseholdv1.NamespaceConfig) error {
	bad := func(format string, args ...any) error {
		return leasehold.Errorf(opNamespace, leasehold.ErrInvalid, string(out.Name), format, args...)
	}
	out.Churn = orUsual(c.GetChurn(), DefaultChurn)
	out.Rebalance = orUsual(time.Duration(c.GetRebalance()), DefaultRebalance)
	out.MoveTimeout = orUsual(time.Duration(c.GetMoveTimeout()), DefaultMoveTimeout)
	switch moves := c.GetMoves(); {
	case !(out.Churn > 0 && out.Churn <= 1): // so written, NaN is refused
		return bad("churn is %v, want more than 0 and at most 1: a share of all keys in a minute", out.Churn)
	case out.Rebalance < leastPeriod || out.Rebalance > mostPeriod:
		return bad("the loads are to be looked at every %v, want %v to %v", out.Rebalance, leastPeriod, mostPeriod)
	case out.MoveTimeout < leastPeriod || out.MoveTimeout > mostPeriod:
		return bad("a move may make no progress for %v, want %v to %v", out.MoveTimeout, leastPeriod, mostPeriod)
	case moves > protocol.MaxAtATime:
		return bad("%d moves of an owner at a time, want at most %d", moves, protocol.MaxAtATime)
	default:
		out.Moves = orUsual(int(moves), DefaultMoves)
	}
	return nil
}

// orUsual is a setting, or what is usual if it is 0.
func orUsual[T comparable](setting, usual T) T {
	var zero T
	if setting == zero {
		return usual
	}
	return setting
}
