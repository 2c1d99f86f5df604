package wire

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// Bounds on a namespace's configuration.
const (
	// DefaultMaxOwners is what a namespace gets that asks for nothing else.
	DefaultMaxOwners = 4096
	// MaxMaxOwners is the most that it can ask for.
	MaxMaxOwners = 1 << 16
	// MaxAfterGeneration is the newest generation that a namespace can begin after:
	// as many again are left for it.
	MaxAfterGeneration = 1 << 62
	// MaxStaticSlots keeps the catalog, which is written as a whole, small.
	MaxStaticSlots = 4096
)

const opNamespace = "namespace configuration"

// FromNamespace writes a namespace's configuration. What was promised under an
// earlier one is the managers' own business and not part of it. A namespace that
// was stored before a setting existed has the setting's default; so whoever reads
// a configuration and writes it back changes nothing.
func FromNamespace(n storage.Namespace) *leaseholdv1.NamespaceConfig {
	out := &leaseholdv1.NamespaceConfig{
		Name:         string(n.Name),
		Timing:       fromTiming(protocol.Timing{Lease: n.Lease, Renew: n.Renew, Drift: n.Drift}),
		Policy:       orUsual(n.Policy, UnnamedPolicy()),
		VirtualNodes: uint32(n.VirtualNodes),
		Static:       make([]*leaseholdv1.StaticSlot, len(n.Static)),
		MaxOwners:    uint32(n.MaxOwners),
		Churn:        orUsual(n.Churn, DefaultChurn),
		Rebalance:    int64(orUsual(n.Rebalance, DefaultRebalance)),
		Moves:        uint32(orUsual(n.Moves, DefaultMoves)),
		MoveTimeout:  int64(orUsual(n.MoveTimeout, DefaultMoveTimeout)),

		AfterGeneration: uint64(n.After),
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
		return fail(&leasehold.Error{Op: opNamespace, Kind: leasehold.ErrInvalid, Subject: string(name), Err: err})
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
		return fail(leasehold.Errorf(opNamespace, leasehold.ErrInvalid, string(name), "max owners is %d, want at most %d", asked, MaxMaxOwners))
	case asked > 0:
		out.MaxOwners = int(asked)
	}
	if c.GetAfterGeneration() >= MaxAfterGeneration {
		return fail(leasehold.Errorf(opNamespace, leasehold.ErrInvalid, string(name), "it is to begin after generation %d, want less than 2^62", c.GetAfterGeneration()))
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
