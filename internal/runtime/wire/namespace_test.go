package wire_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/partition"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"pgregory.net/rapid"
)

func TestToNamespaceFillsDefaults(t *testing.T) {
	type config = leaseholdv1.NamespaceConfig
	usual := storage.Namespace{
		Name: "n", Lease: 10 * time.Second, Renew: 2500 * time.Millisecond, Drift: 1.2,
		Policy: "balanced", MaxOwners: 4096,
		Churn: 0.09, Rebalance: 10 * time.Second, Moves: 4, MoveTimeout: time.Minute, MinLoad: 50, LoadUnit: "requests",
	}
	with := func(change func(*storage.Namespace)) storage.Namespace {
		n := usual
		change(&n)
		return n
	}
	for _, c := range []struct {
		name string
		in   *config
		want storage.Namespace
	}{
		{"all of them", &config{Name: "n"}, usual},
		{"an empty timing", &config{Name: "n", Timing: &leaseholdv1.Timing{}}, usual},
		{
			"renewals of another lease", &config{Name: "n", Timing: &leaseholdv1.Timing{Lease: int64(time.Minute)}},
			with(func(n *storage.Namespace) { n.Lease, n.Renew = time.Minute, 15*time.Second }),
		},
		{
			"nothing to fill in",
			&config{
				Name: "n", Timing: &leaseholdv1.Timing{Lease: 1e9, Renew: 1e8, Drift: 1.5}, Policy: "consistent", VirtualNodes: 7, MaxOwners: 9,
				Churn: 1, Rebalance: 3e9, Moves: 64, MoveTimeout: 4e9, MinLoad: 0.25, LoadUnit: "CPU seconds",
			},
			storage.Namespace{
				Name: "n", Lease: time.Second, Renew: 100 * time.Millisecond, Drift: 1.5, Policy: "consistent", VirtualNodes: 7, MaxOwners: 9,
				Churn: 1, Rebalance: 3 * time.Second, Moves: 64, MoveTimeout: 4 * time.Second, MinLoad: 0.25, LoadUnit: "CPU seconds",
			},
		},
		{
			"consistent", &config{Name: "n", Policy: "consistent"},
			with(func(n *storage.Namespace) { n.Policy, n.VirtualNodes = "consistent", 64 }),
		},
		{
			"adaptive", &config{Name: "n", Policy: "adaptive", VirtualNodes: 8},
			with(func(n *storage.Namespace) { n.Policy, n.VirtualNodes = "adaptive", 8 }),
		},
		{
			"even", &config{Name: "n", Policy: "even"},
			with(func(n *storage.Namespace) { n.Policy = "even" }),
		},
		{
			"static, with neighbours that are one",
			&config{Name: "n", Policy: "static", Static: []*leaseholdv1.StaticSlot{{}, {Start: 5, Owner: "ann"}, {Start: 9, Owner: "ann"}}},
			with(func(n *storage.Namespace) {
				n.Policy, n.Static = "static", []storage.StaticSlot{{}, {Start: 5, Owner: "ann"}}
			}),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := wire.ToNamespace(c.in)
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestToNamespaceRefuses(t *testing.T) {
	type config = *leaseholdv1.NamespaceConfig
	good := func() config { return &leaseholdv1.NamespaceConfig{Name: "n", Timing: &leaseholdv1.Timing{}} }
	read := func(c config) error { _, err := wire.ToNamespace(c); return err }
	slots := func(list ...*leaseholdv1.StaticSlot) func(config) {
		return func(c config) { c.Policy, c.Static = "static", list }
	}
	const invalid = leasehold.ErrInvalid
	checkRefusals(t, good, read, []refusal[config]{
		{"no name", func(c config) { c.Name = "" }, invalid, "namespace: want 1 to 64 characters"},
		{"a negative lease", func(c config) { c.Timing.Lease = -1 }, invalid, `namespace configuration "n": timing "-1ns": a lease lasts`},
		{"too few renewals", func(c config) { c.Timing.Renew = 6e9 }, invalid, "renewals come at least twice"},
		{"no drift", func(c config) { c.Timing.Drift = 0.5 }, invalid, "is 0.5, want 1 to 10"},
		{"an unknown policy", func(c config) { c.Policy = "best" }, invalid, `policy is "best", want one of adaptive, balanced, consistent, even, static`},
		{"a very long policy", func(c config) { c.Policy = strings.Repeat("x", 1<<20) }, invalid, "xxx..."},
		{"too many virtual nodes", func(c config) { c.Policy, c.VirtualNodes = "adaptive", 4097 }, invalid, "4097 virtual nodes, want at most 4096"},
		{"virtual nodes for nothing", func(c config) { c.Policy, c.VirtualNodes = "even", 1 }, invalid, "policy even has no virtual nodes: leave them out or use consistent or adaptive"},
		{"virtual nodes for the default", func(c config) { c.VirtualNodes = 1 }, invalid, "policy balanced has no virtual nodes"},
		{"slots for nothing", func(c config) { c.Static = make([]*leaseholdv1.StaticSlot, 1) }, invalid, "policy balanced has no static slots"},
		{"no slots", slots(), invalid, "the assignment is empty"},
		{"slots from the middle", slots(&leaseholdv1.StaticSlot{Start: 1}), invalid, "slot 0"},
		{"slots out of order", slots(nil, nil), invalid, "slot 1"},
		{"a bad owner", slots(&leaseholdv1.StaticSlot{Owner: "\n"}), invalid, "not printable"},
		{"too many slots", slots(make([]*leaseholdv1.StaticSlot, wire.MaxStaticSlots+1)...), leasehold.ErrLimit, "4097 static slots, at most 4096"},
		{"too many owners", func(c config) { c.MaxOwners = 1<<16 + 1 }, invalid, "max owners is 65537, want at most 65536"},
		{"a negative churn", func(c config) { c.Churn = -0.1 }, invalid, "churn is -0.1, want more than 0 and at most 1"},
		{"more churn than keys", func(c config) { c.Churn = 1.1 }, invalid, "churn is 1.1"},
		{"no churn", func(c config) { c.Churn = math.NaN() }, invalid, "churn is NaN"},
		{"a frenzy", func(c config) { c.Rebalance = 1e8 }, invalid, "rebalance interval is 100ms, want 1s to 24h0m0s"},
		{"a negative period", func(c config) { c.Rebalance = -1 }, invalid, "rebalance interval is -1ns"},
		{"too late a beginning", func(c config) { c.AfterGeneration = 1 << 62 }, invalid, "the first generation is after 4611686018427387904, want less than 2^62"},
		{"no patience", func(c config) { c.MoveTimeout = 1 }, invalid, "the move timeout is 1ns, want 1s to 24h0m0s"},
		{"endless patience", func(c config) { c.MoveTimeout = math.MaxInt64 }, invalid, "want 1s to 24h0m0s"},
		{"a negative load", func(c config) { c.MinLoad = -1 }, invalid, "the minimum load is -1 per second and owner"},
		{"no load", func(c config) { c.MinLoad = math.NaN() }, invalid, "the minimum load is NaN"},
		{"a unit with two lines", func(c config) { c.LoadUnit = "a\nb" }, invalid, `the load unit is "a\nb", want at most 32 bytes`},
		{"a long unit", func(c config) { c.LoadUnit = strings.Repeat("x", 33) }, invalid, "want at most 32 bytes of printable text"},
		{"too many moves", func(c config) { c.Moves = 65 }, invalid, "65 concurrent moves per owner, want at most 64"},
	})
}

func TestNamespaceRoundTrip(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		d := drawer{r}
		timing := d.timing()
		want := storage.Namespace{
			Name: d.namespace(), Lease: timing.Lease, Renew: timing.Renew, Drift: timing.Drift,
			Policy:      rapid.SampledFrom(partition.Names()).Draw(r, "policy"),
			MaxOwners:   rapid.IntRange(1, wire.MaxMaxOwners).Draw(r, "owners"),
			Churn:       rapid.Float64Range(1e-9, 1).Draw(r, "churn"),
			Rebalance:   time.Duration(rapid.Int64Range(1e9, 3600e9).Draw(r, "rebalance")),
			Moves:       rapid.IntRange(1, 64).Draw(r, "moves"),
			MoveTimeout: time.Duration(rapid.Int64Range(1e9, 3600e9).Draw(r, "move timeout")),
			After:       leasehold.Generation(rapid.Uint64Range(0, wire.MaxAfterGeneration-1).Draw(r, "after")),
		}
		want.MinLoad = rapid.Float64Range(1e-9, 1e9).Draw(r, "load")
		want.LoadUnit = rapid.SampledFrom([]string{"requests", "CPU seconds", "µs"}).Draw(r, "unit")
		switch want.Policy {
		case "consistent", "adaptive":
			want.VirtualNodes = rapid.IntRange(1, 4096).Draw(r, "nodes")
		case "static":
			want.Static = []storage.StaticSlot{{Owner: "a"}, {Start: 1}, {Start: 9, Owner: "b"}}
		}
		got, err := wire.ToNamespace(through(t, wire.FromNamespace(want)))
		sameAfter(r, want, got, err)
	})
}

// A namespace of a version without policies and moves is unchanged, also after reading and writing it back.
func TestNamespaceOfVersion1(t *testing.T) {
	old := storage.Namespace{Name: "n", Lease: 10 * time.Second, Renew: 2500 * time.Millisecond, Drift: 1.2, MaxOwners: 5}
	want := old
	want.Policy, want.VirtualNodes = "consistent", partition.DefaultVirtualNodes
	want.Churn, want.Rebalance, want.Moves, want.MoveTimeout = 0.09, 10*time.Second, 4, time.Minute
	want.MinLoad, want.LoadUnit = 50, "requests"
	got, err := wire.ToNamespace(wire.FromNamespace(old))
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}
