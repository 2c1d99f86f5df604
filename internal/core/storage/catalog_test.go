package storage_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"pgregory.net/rapid"
)

func namespaces() *rapid.Generator[storage.Namespace] {
	return rapid.Custom(func(t *rapid.T) storage.Namespace {
		return storage.Namespace{
			Name:  leasehold.Namespace(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "name")),
			Lease: leases().Draw(t, "lease"), Drift: drifts().Draw(t, "drift"),
		}
	})
}

func leases() *rapid.Generator[time.Duration] {
	return rapid.Map(rapid.IntRange(1, 100), func(n int) time.Duration { return time.Duration(n) * time.Second })
}

func drifts() *rapid.Generator[mono.Drift] {
	return rapid.Map(rapid.IntRange(100, 200), func(n int) mono.Drift { return mono.Drift(n) / 100 })
}

// A catalog is a map from names to namespaces, sorted by name, and immutable.
func TestCatalogIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		catalog, model := &storage.Catalog{Version: 7, Term: 3}, map[leasehold.Namespace]storage.Namespace{}
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			n := namespaces().Draw(t, "namespace")
			before, kept := catalog, slices.Clone(catalog.Namespaces)
			if rapid.Bool().Draw(t, "add") {
				catalog, model[n.Name] = catalog.With(n), n
			} else {
				catalog = catalog.Without(n.Name)
				delete(model, n.Name)
			}
			if diff := cmp.Diff(kept, before.Namespaces); diff != "" {
				t.Fatalf("the catalog before has changed (-want +got):\n%s", diff)
			}
			checkCatalog(t, catalog, model)
		}
	})
}

func checkCatalog(t *rapid.T, c *storage.Catalog, model map[leasehold.Namespace]storage.Namespace) {
	if c.Version != 7 || c.Term != 3 {
		t.Fatalf("version %d and term %d, want 7 and 3", c.Version, c.Term)
	}
	if len(c.Namespaces) != len(model) {
		t.Fatalf("there are %d namespaces, want %d", len(c.Namespaces), len(model))
	}
	if !slices.IsSortedFunc(c.Namespaces, func(a, b storage.Namespace) int { return strings.Compare(string(a.Name), string(b.Name)) }) {
		t.Fatalf("not sorted: %v", c.Namespaces)
	}
	for _, name := range []leasehold.Namespace{"", "a", "b", "c", "d", "e", "f"} {
		found := c.Find(name)
		want, there := model[name]
		if (found != nil) != there || there && !found.Equal(want) {
			t.Fatalf("%q is %+v, want %+v, there: %t", name, found, want, there)
		}
	}
}

// After any number of timing changes, the wait of the present configuration and Promised covers
// every lease granted since Promised was last cleared, and is never longer than for the longest of
// them.
func TestPromisingWaitsForAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := namespaces().Draw(t, "first")
		longest := n.Drift.Stretch(n.Lease)
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			lease, drift := leases().Draw(t, "lease"), drifts().Draw(t, "drift")
			before := n
			n = n.Promising(lease, lease/4, drift)
			longest = max(longest, drift.Stretch(lease))
			if n.Lease != lease || n.Renew != lease/4 || n.Drift != drift || n.Name != before.Name {
				t.Fatalf("%+v has become %+v", before, n)
			}
			hold := n.Drift.Stretch(n.Lease)
			if got := max(hold, n.Promised); got != longest {
				t.Fatalf("a new leader waits for %v, want %v", got, longest)
			}
			if n.Promised != 0 && n.Promised <= hold {
				t.Fatalf("Promised is %v, and the wait is %v without it", n.Promised, hold)
			}
			if rapid.Bool().Draw(t, "settled") {
				n.Promised, longest = 0, hold
			}
		}
	})
}

func TestEqualComparesAllFields(t *testing.T) {
	base := storage.Namespace{
		Name: "n", Lease: 4, Renew: 1, Drift: 1.2, Policy: "static", VirtualNodes: 3,
		Static: []storage.StaticSlot{{Start: 0, Owner: "a"}}, MaxOwners: 5, Promised: 9,
	}
	same := base
	same.Static = slices.Clone(base.Static)
	if !base.Equal(same) {
		t.Error("a copy is not equal")
	}
	changes := map[string]func(*storage.Namespace){
		"name":          func(n *storage.Namespace) { n.Name = "m" },
		"lease":         func(n *storage.Namespace) { n.Lease++ },
		"renew":         func(n *storage.Namespace) { n.Renew++ },
		"drift":         func(n *storage.Namespace) { n.Drift++ },
		"policy":        func(n *storage.Namespace) { n.Policy = "even" },
		"virtual nodes": func(n *storage.Namespace) { n.VirtualNodes++ },
		"static":        func(n *storage.Namespace) { n.Static = []storage.StaticSlot{{Start: 0, Owner: "b"}} },
		"owners":        func(n *storage.Namespace) { n.MaxOwners++ },
		"promised":      func(n *storage.Namespace) { n.Promised++ },
		"deletion":      func(n *storage.Namespace) { n.Deleted = true },
		"churn":         func(n *storage.Namespace) { n.Churn++ },
		"rebalance":     func(n *storage.Namespace) { n.Rebalance++ },
		"moves":         func(n *storage.Namespace) { n.Moves++ },
		"move timeout":  func(n *storage.Namespace) { n.MoveTimeout++ },
		"min load":      func(n *storage.Namespace) { n.MinLoad++ },
		"load unit":     func(n *storage.Namespace) { n.LoadUnit = "players" },
		"generations":   func(n *storage.Namespace) { n.After++ },
	}
	if n := reflect.TypeFor[storage.Namespace]().NumField(); n != len(changes) {
		t.Errorf("a namespace has %d fields, and %d are changed here", n, len(changes))
	}
	for name, change := range changes {
		other := base
		change(&other)
		if base.Equal(other) {
			t.Errorf("a change of %s is ignored", name)
		}
	}
}

// A deleted namespace is not found, but its entry remains until it is settled.
func TestDeletedEntry(t *testing.T) {
	c := (&storage.Catalog{}).With(storage.Namespace{Name: "a"}).With(storage.Namespace{Name: "b", Deleted: true})
	if c.Find("a") == nil || c.Find("b") != nil || c.Find("c") != nil {
		t.Errorf("Find must only find a: %v, %v, %v", c.Find("a"), c.Find("b"), c.Find("c"))
	}
	if c.Entry("a") == nil || c.Entry("b") == nil || c.Entry("c") != nil {
		t.Errorf("Entry must only find a and b: %v, %v, %v", c.Entry("a"), c.Entry("b"), c.Entry("c"))
	}
}

// No configuration makes generations go back.
func TestConfiguredNeverGoesBack(t *testing.T) {
	c := (&storage.Catalog{}).Configured(storage.Namespace{Name: "a", After: 7})
	if got := c.Configured(storage.Namespace{Name: "a", After: 3}).Find("a").After; got != 7 {
		t.Errorf("After goes back to %d, want 7", got)
	}
	if got := c.Deleted("a").Configured(storage.Namespace{Name: "a"}).Find("a").After; got != 7 {
		t.Errorf("deleted and created, After goes back to %d, want 7", got)
	}
	if got := c.Configured(storage.Namespace{Name: "a", After: 9}).Find("a").After; got != 9 {
		t.Errorf("After is %d, want 9", got)
	}
}

func TestSettled(t *testing.T) {
	kept := storage.Namespace{Name: "kept", Lease: 1, Promised: 5}
	gone := storage.Namespace{Name: "gone", Lease: 1, Promised: 5, Deleted: true}
	c := (&storage.Catalog{Version: 7, Term: 3}).With(kept).With(gone)
	other := kept
	other.Promised = 6
	for _, test := range []struct {
		name string
		was  storage.Namespace
		want []storage.Namespace // nil: no write is needed
	}{
		{"promise", kept, []storage.Namespace{gone, {Name: "kept", Lease: 1}}},
		{"deletion", gone, []storage.Namespace{kept}},
		{"changed entry", other, nil},
		{"missing entry", storage.Namespace{Name: "never"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := c.Settled(test.was)
			if got == nil {
				if test.want != nil {
					t.Error("no write is needed")
				}
				return
			}
			if diff := cmp.Diff(test.want, got.Namespaces); diff != "" || got.Version != 7 || got.Term != 3 {
				t.Errorf("version %d, term %d (-want +got):\n%s", got.Version, got.Term, diff)
			}
		})
	}
}

// TestConfiguredPromises: a promise is for leases of an entry that was there. Longer and equal leases need none.
func TestConfiguredPromises(t *testing.T) {
	timing := func(lease time.Duration) storage.Namespace {
		return storage.Namespace{Name: "a", Lease: lease, Renew: lease / 4, Drift: 1.2, Promised: time.Hour, Deleted: true}
	}
	c := (&storage.Catalog{}).Configured(timing(10 * time.Second))
	if n := c.Find("a"); n == nil || n.Promised != 0 {
		t.Fatalf("the new namespace is %+v", n)
	}
	for _, step := range []struct{ lease, want time.Duration }{
		{10 * time.Second, 0}, {20 * time.Second, 0}, {5 * time.Second, 24 * time.Second}, {10 * time.Second, 24 * time.Second},
	} {
		c = c.Configured(timing(step.lease))
		if got := c.Find("a"); got.Promised != step.want {
			t.Errorf("after a change to %v, %v are promised, want %v", step.lease, got.Promised, step.want)
		}
	}
	deleted := c.Deleted("a")
	if deleted.Find("a") != nil || !deleted.Entry("a").Deleted || deleted.Entry("a").Promised != 24*time.Second {
		t.Errorf("the deleted entry is %+v", deleted.Entry("a"))
	}
	if c.Deleted("b") != nil || deleted.Deleted("a") != nil {
		t.Error("a namespace that is not there is deleted")
	}
}
