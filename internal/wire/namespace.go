package wire

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/protocol"
	"github.com/leasehold-dev/leasehold/internal/storage"
	"github.com/leasehold-dev/leasehold/partition"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// Bounds on a namespace's configuration.
const (
	// DefaultMaxOwners is what a namespace gets that asks for nothing else.
	DefaultMaxOwners = 4096
	// MaxMaxOwners is the most that it can ask for.
	MaxMaxOwners = 1 << 16
	// MaxStaticSlots keeps the catalog, which is written as a whole, small.
	MaxStaticSlots = 4096
)

const opNamespace = "namespace configuration"

// FromNamespace writes a namespace's configuration. What was promised under an
// earlier one is the managers' own business and not part of it.
func FromNamespace(n storage.Namespace) *leaseholdv1.NamespaceConfig {
	out := &leaseholdv1.NamespaceConfig{
		Name:         string(n.Name),
		Timing:       fromTiming(protocol.Timing{Lease: n.Lease, Renew: n.Renew, Drift: n.Drift}),
		Policy:       n.Policy,
		VirtualNodes: uint32(n.VirtualNodes),
		Static:       make([]*leaseholdv1.StaticSlot, len(n.Static)),
		MaxOwners:    uint32(n.MaxOwners),
	}
	for i, s := range n.Static {
		out.Static[i] = &leaseholdv1.StaticSlot{Start: uint64(s.Start), Owner: string(s.Owner)}
	}
	return out
}

// ToNamespace reads a namespace's configuration, fills in the default for
// whatever is 0, and checks all of it.
func ToNamespace(c *leaseholdv1.NamespaceConfig) (storage.Namespace, error) {
	fail := func(err error) (storage.Namespace, error) { return storage.Namespace{}, err }
	name := leasehold.Namespace(c.GetName())
	if err := name.Validate(); err != nil {
		return fail(err)
	}
	timing := defaultedTiming(c.GetTiming())
	if err := timing.Validate(); err != nil {
		return fail(&leasehold.Error{Op: opNamespace, Kind: leasehold.Invalid, Subject: string(name), Err: err})
	}
	out := storage.Namespace{
		Name:      name,
		Lease:     timing.Lease,
		Renew:     timing.Renew,
		Drift:     timing.Drift,
		MaxOwners: DefaultMaxOwners,
	}
	switch asked := c.GetMaxOwners(); {
	case asked > MaxMaxOwners:
		return fail(leasehold.Errorf(opNamespace, leasehold.Invalid, string(name), "max owners is %d, want at most %d", asked, MaxMaxOwners))
	case asked > 0:
		out.MaxOwners = int(asked)
	}
	if err := readPolicy(&out, c); err != nil {
		return fail(err)
	}
	return out, nil
}

// defaultedTiming reads a timing. Renewals follow the lease, so that whoever
// asks for a longer lease does not have to think of them.
func defaultedTiming(t *leaseholdv1.Timing) protocol.Timing {
	out, usual := toTiming(t), protocol.DefaultTiming()
	if out.Lease == 0 {
		out.Lease = usual.Lease
	}
	if out.Renew == 0 {
		out.Renew = out.Lease / 4
	}
	if out.Drift == 0 {
		out.Drift = usual.Drift
	}
	return out
}

// readPolicy reads how keys are divided. A setting that the policy does not
// have is an error, since whoever made it expects something of it.
func readPolicy(out *storage.Namespace, c *leaseholdv1.NamespaceConfig) error {
	bad := func(format string, args ...any) error {
		return leasehold.Errorf(opNamespace, leasehold.Invalid, string(out.Name), format, args...)
	}
	consistent, even, static := partition.Consistent{}.Name(), partition.Even{}.Name(), partition.Static{}.Name()
	out.Policy = c.GetPolicy()
	if out.Policy == "" {
		out.Policy = consistent
	}
	nodes := c.GetVirtualNodes()
	switch {
	case out.Policy != consistent && out.Policy != even && out.Policy != static:
		return bad("policy is %q, want %s, %s or %s", clip(out.Policy), consistent, even, static)
	case out.Policy != consistent && nodes != 0:
		return bad("policy %s has no virtual nodes: leave them out or use %s", out.Policy, consistent)
	case nodes > partition.MaxVirtualNodes:
		return bad("%d virtual nodes, want at most %d", nodes, partition.MaxVirtualNodes)
	case out.Policy != static && len(c.GetStatic()) > 0:
		return bad("policy %s has no static slots: leave them out or use %s", out.Policy, static)
	case out.Policy == static:
		return readStatic(out, c.GetStatic())
	}
	if out.Policy == consistent {
		out.VirtualNodes = partition.DefaultVirtualNodes
		if nodes > 0 {
			out.VirtualNodes = int(nodes)
		}
	}
	return nil
}

func readStatic(out *storage.Namespace, list []*leaseholdv1.StaticSlot) error {
	if len(list) > MaxStaticSlots {
		return leasehold.Errorf(opNamespace, leasehold.Limit, string(out.Name), "%d static slots, at most %d are allowed", len(list), MaxStaticSlots)
	}
	slots := make([]partition.Slot, len(list))
	for i, s := range list {
		slots[i] = partition.Slot{Start: leasehold.Key(s.GetStart()), Owner: leasehold.OwnerID(s.GetOwner())}
	}
	policy, err := partition.NewStatic(slots)
	if err != nil {
		return &leasehold.Error{Op: opNamespace, Kind: leasehold.Invalid, Subject: string(out.Name), Err: err}
	}
	out.Static = make([]storage.StaticSlot, len(policy.Slots))
	for i, s := range policy.Slots {
		out.Static[i] = storage.StaticSlot{Start: s.Start, Owner: s.Owner}
	}
	return nil
}
