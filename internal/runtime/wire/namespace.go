package wire

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/partition"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// Limits of a namespace's configuration.
const (
	// DefaultMaxOwners is the default of MaxOwners.
	DefaultMaxOwners = 4096
	// MaxMaxOwners is the maximum of MaxOwners.
	MaxMaxOwners = 1 << 16
	// MaxAfterGeneration is the maximum of AfterGeneration. It leaves as many generations for the
	// namespace.
	MaxAfterGeneration = 1 << 62
	// MaxStaticSlots limits the size of the catalog, which is written as a whole.
	MaxStaticSlots = 4096
)

const opNamespace = "namespace configuration"

// FromNamespace encodes a namespace's configuration, without the promises under an earlier one, which are
// internal to the managers. A setting that is newer than the stored namespace has its default, so that
// reading and writing back a configuration changes nothing.
func FromNamespace(n storage.Namespace) *leaseholdv1.NamespaceConfig {
	out := &leaseholdv1.NamespaceConfig{
		Name:         string(n.Name),
		Timing:       fromTiming(protocol.Timing{Lease: n.Lease, Renew: n.Renew, Drift: n.Drift}),
		Policy:       cmp.Or(n.Policy, UnnamedPolicy()),
		VirtualNodes: uint32(n.VirtualNodes),
		Static:       make([]*leaseholdv1.StaticSlot, len(n.Static)),
		MaxOwners:    uint32(n.MaxOwners),
		Churn:        cmp.Or(n.Churn, DefaultChurn),
		Rebalance:    int64(cmp.Or(n.Rebalance, DefaultRebalance)),
		Moves:        uint32(cmp.Or(n.Moves, DefaultMoves)),
		MoveTimeout:  int64(cmp.Or(n.MoveTimeout, DefaultMoveTimeout)),

		AfterGeneration: uint64(n.After),

		MinLoad:  cmp.Or(n.MinLoad, DefaultMinLoad),
		LoadUnit: cmp.Or(n.LoadUnit, DefaultLoadUnit),
	}
	for i, s := range n.Static {
		out.Static[i] = &leaseholdv1.StaticSlot{Start: uint64(s.Start), Owner: string(s.Owner)}
	}
	return out
}

// ToNamespace decodes and validates a namespace's configuration. Fields that are 0 get their defaults.
func ToNamespace(c *leaseholdv1.NamespaceConfig) (storage.Namespace, error) {
	fail := func(err error) (storage.Namespace, error) { return storage.Namespace{}, err }
	name := leasehold.Namespace(c.GetName())
	if err := name.Validate(); err != nil {
		return fail(err)
	}
	timing := defaultedTiming(c.GetTiming())
	if err := timing.Validate(); err != nil {
		return fail(&leasehold.Error{Op: opNamespace, Kind: leasehold.ErrInvalid, Subject: string(name), Err: err})
	}
	out := storage.Namespace{
		Name:      name,
		Lease:     timing.Lease,
		Renew:     timing.Renew,
		Drift:     timing.Drift,
		MaxOwners: cmp.Or(int(c.GetMaxOwners()), DefaultMaxOwners),
	}
	if c.GetMaxOwners() > MaxMaxOwners {
		return fail(leasehold.Errorf(opNamespace, leasehold.ErrInvalid, string(name), "max owners is %d, want at most %d", c.GetMaxOwners(), MaxMaxOwners))
	}
	if c.GetAfterGeneration() >= MaxAfterGeneration {
		return fail(leasehold.Errorf(opNamespace, leasehold.ErrInvalid, string(name), "the first generation is after %d, want less than 2^62", c.GetAfterGeneration()))
	}
	out.After = leasehold.Generation(c.GetAfterGeneration())
	if err := readPolicy(&out, c); err != nil {
		return fail(err)
	}
	if err := readMoving(&out, c); err != nil {
		return fail(err)
	}
	return out, nil
}

// defaultedTiming decodes a timing. The default of the renewal interval is proportional to the lease.
func defaultedTiming(t *leaseholdv1.Timing) protocol.Timing {
	out, usual := toTiming(t), protocol.DefaultTiming()
	out.Lease = cmp.Or(out.Lease, usual.Lease)
	out.Renew = cmp.Or(out.Renew, out.Lease/4)
	out.Drift = cmp.Or(out.Drift, usual.Drift)
	return out
}

// Defaults of a namespace.
const (
	DefaultChurn       = 0.09
	DefaultRebalance   = 10 * time.Second
	DefaultMoves       = 4
	DefaultMoveTimeout = time.Minute
	DefaultMinLoad     = 50
	DefaultLoadUnit    = "requests"
)

const maxLoadUnit = 32 // bytes

// Limits of moves.
const (
	minPeriod = time.Second
	maxPeriod = 24 * time.Hour
)

// UnnamedPolicy returns the policy of a namespace that is stored without one: it was created when there was no
// other.
func UnnamedPolicy() string { return partition.Consistent{}.Name() }

func hasVirtualNodes(policy string) bool {
	return policy == partition.Consistent{}.Name() || policy == partition.Adaptive{}.Name()
}

// readPolicy decodes the partitioning policy. A setting that the policy does not support is an error,
// because it would have no effect.
func readPolicy(out *storage.Namespace, c *leaseholdv1.NamespaceConfig) error {
	bad := func(format string, args ...any) error {
		return leasehold.Errorf(opNamespace, leasehold.ErrInvalid, string(out.Name), format, args...)
	}
	static := partition.Static{}.Name()
	out.Policy = cmp.Or(c.GetPolicy(), partition.DefaultName)
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
		out.VirtualNodes = cmp.Or(int(nodes), partition.DefaultVirtualNodes)
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

// readMoving decodes the limits of moves. They apply to all policies, because a manager may replace any
// policy.
func readMoving(out *storage.Namespace, c *leaseholdv1.NamespaceConfig) error {
	bad := func(format string, args ...any) error {
		return leasehold.Errorf(opNamespace, leasehold.ErrInvalid, string(out.Name), format, args...)
	}
	out.Churn = cmp.Or(c.GetChurn(), DefaultChurn)
	out.Rebalance = cmp.Or(time.Duration(c.GetRebalance()), DefaultRebalance)
	out.MoveTimeout = cmp.Or(time.Duration(c.GetMoveTimeout()), DefaultMoveTimeout)
	out.MinLoad, out.LoadUnit = cmp.Or(c.GetMinLoad(), DefaultMinLoad), cmp.Or(c.GetLoadUnit(), DefaultLoadUnit)
	switch moves := c.GetMoves(); {
	case !(out.Churn > 0 && out.Churn <= 1): // this form rejects NaN
		return bad("churn is %v, want more than 0 and at most 1: a share of all keys in a minute", out.Churn)
	case out.Rebalance < minPeriod || out.Rebalance > maxPeriod:
		return bad("the rebalance interval is %v, want %v to %v", out.Rebalance, minPeriod, maxPeriod)
	case out.MoveTimeout < minPeriod || out.MoveTimeout > maxPeriod:
		return bad("the move timeout is %v, want %v to %v", out.MoveTimeout, minPeriod, maxPeriod)
	case !(out.MinLoad > 0 && out.MinLoad <= partition.MaxRate):
		return bad("the minimum load is %v per second and owner, want more than 0 and at most %g", out.MinLoad, partition.MaxRate)
	case len(out.LoadUnit) > maxLoadUnit || strings.ContainsFunc(out.LoadUnit, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }):
		return bad("the load unit is %q, want at most %d bytes of printable text", clip(out.LoadUnit), maxLoadUnit)
	case moves > protocol.MaxAtATime:
		return bad("%d concurrent moves per owner, want at most %d", moves, protocol.MaxAtATime)
	default:
		out.Moves = cmp.Or(int(moves), DefaultMoves)
	}
	return nil
}
