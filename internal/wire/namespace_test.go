package wire_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/storage"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"pgregory.net/rapid"
)

func TestToNamespaceFillsDefaults(t *testing.T) {
	type config = leaseholdv1.NamespaceConfig
	usual := storage.Namespace{
		Name: "n", Lease: 10 * time.Second, Renew: 2500 * time.Millisecond, Drift: 1.2,
		Policy: "consistent", VirtualNodes: 64, MaxOwners: 4096,
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
			&config{Name: "n", Timing: &leaseholdv1.Timing{Lease: 1e9, Renew: 1e8, Drift: 1.5}, Policy: "consistent", VirtualNodes: 7, MaxOwners: 9},
			storage.Namespace{Name: "n", Lease: time.Second, Renew: 100 * time.Millisecond, Drift: 1.5, Policy: "consistent", VirtualNodes: 7, MaxOwners: 9},
		},
		{
			"even", &config{Name: "n", Policy: "even"},
			with(func(n *storage.Namespace) { n.Policy, n.VirtualNodes = "even", 0 }),
		},
		{
			"static, with neighbours that are one",
			&config{Name: "n", Policy: "static", Static: []*leaseholdv1.StaticSlot{{}, {Start: 5, Owner: "ann"}, {Start: 9, Owner: "ann"}}},
			with(func(n *storage.Namespace) {
				n.Policy, n.VirtualNodes, n.Static = "static", 0, []storage.StaticSlot{{}, {Start: 5, Owner: "ann"}}
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
	const invalid = leasehold.Invalid
	checkRefusals(t, good, read, []refusal[config]{
		{"no name", func(c config) { c.Name = "" }, invalid, "namespace: want 1 to 64 characters"},
		{"a negative lease", func(c config) { c.Timing.Lease = -1 }, invalid, `namespace configuration "n": timing "-1ns": a lease lasts`},
		{"too few renewals", func(c config) { c.Timing.Renew = 6e9 }, invalid, "renewals come at least twice"},
		{"no drift", func(c config) { c.Timing.Drift = 0.5 }, invalid, "is 0.5, want 1 to 10"},
		{"an unknown policy", func(c config) { c.Policy = "best" }, invalid, `policy is "best", want consistent, even or static`},
		{"a very long policy", func(c config) { c.Policy = strings.Repeat("x", 1<<20) }, invalid, "xxx..."},
		{"too many virtual nodes", func(c config) { c.VirtualNodes = 4097 }, invalid, "4097 virtual nodes, want at most 4096"},
		{"virtual nodes for nothing", func(c config) { c.Policy, c.VirtualNodes = "even", 1 }, invalid, "policy even has no virtual nodes"},
		{"slots for nothing", func(c config) { c.Static = make([]*leaseholdv1.StaticSlot, 1) }, invalid, "policy consistent has no static slots"},
		{"no slots", slots(), invalid, "it is empty"},
		{"slots from the middle", slots(&leaseholdv1.StaticSlot{Start: 1}), invalid, "slot 0"},
		{"slots out of order", slots(nil, nil), invalid, "slot 1"},
		{"a bad owner", slots(&leaseholdv1.StaticSlot{Owner: "\n"}), invalid, "not printable"},
		{"too many slots", slots(make([]*leaseholdv1.StaticSlot, wire.MaxStaticSlots+1)...), leasehold.Limit, "4097 static slots, at most 4096"},
		{"too many owners", func(c config) { c.MaxOwners = 1<<16 + 1 }, invalid, "max owners is 65537, want at most 65536"},
	})
}

func TestNamespaceRoundTrip(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		d := drawer{r}
		timing := d.timing()
		want := storage.Namespace{
			Name: d.namespace(), Lease: timing.Lease, Renew: timing.Renew, Drift: timing.Drift,
			Policy:    rapid.SampledFrom([]string{"consistent", "even", "static"}).Draw(r, "policy"),
			MaxOwners: rapid.IntRange(1, wire.MaxMaxOwners).Draw(r, "owners"),
		}
		switch want.Policy {
		case "consistent":
			want.VirtualNodes = rapid.IntRange(1, 4096).Draw(r, "nodes")
		case "static":
			want.Static = []storage.StaticSlot{{Owner: "a"}, {Start: 1}, {Start: 9, Owner: "b"}}
		}
		got, err := wire.ToNamespace(through(t, wire.FromNamespace(want)))
		sameAfter(r, want, got, err)
	})
}
