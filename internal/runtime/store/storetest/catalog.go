package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
)

var twoNamespaces = []storage.Namespace{
	{Name: "chat", Lease: 10 * time.Second, Renew: 2500 * time.Millisecond, Drift: 1.2, Policy: "consistent", VirtualNodes: 64, MaxOwners: 100, Promised: 12 * time.Second, Churn: 0.25, Rebalance: 7 * time.Second, Moves: 3, MoveTimeout: 90 * time.Second, After: 1 << 40, MinLoad: 0.5, LoadUnit: "CPU seconds"},
	{Name: "presence", Lease: time.Minute, Renew: 15 * time.Second, Drift: 1.0833, Policy: "static", Static: []storage.StaticSlot{{Start: 0, Owner: "ann"}, {Start: 1 << 63}}},
}

func catalogRoundTrip(t *testing.T, s store.Store) {
	empty, err := s.Catalog(t.Context())
	if diff := cmp.Diff(&storage.Catalog{}, empty); err != nil || diff != "" {
		t.Fatalf("before the first write: %v (-want +got):\n%s", err, diff)
	}
	lead(t, s, 3)
	want := &storage.Catalog{Term: 3, Namespaces: twoNamespaces}
	outcome, err := s.SaveCatalog(t.Context(), want)
	wantOutcome(t, "save", storage.Done, outcome, err)
	lead(t, s, 4)
	got, err := s.Catalog(t.Context())
	if err != nil || got.Version == 0 {
		t.Fatalf("version %d (%v)", got.Version, err)
	}
	want.Term, want.Version = 4, got.Version
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("catalog (-want +got):\n%s", diff)
	}
}

func catalogGuards(t *testing.T, s store.Store) {
	save := func(what string, want storage.Outcome, c storage.Catalog) {
		t.Helper()
		outcome, err := s.SaveCatalog(t.Context(), &c)
		wantOutcome(t, what, want, outcome, err)
	}
	save("without a leader", storage.Conflict, storage.Catalog{Term: 1})
	lead(t, s, 2)
	save("an older term", storage.Conflict, storage.Catalog{Term: 1})
	save("a term to come", storage.Conflict, storage.Catalog{Term: 3})
	save("a version to come", storage.Conflict, storage.Catalog{Term: 2, Version: 1 << 40})
	save("the first", storage.Done, storage.Catalog{Term: 2, Namespaces: twoNamespaces})
	save("the first again", storage.Conflict, storage.Catalog{Term: 2})
	now, err := s.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	save("the second", storage.Done, *now.Without("chat"))
	save("the second again", storage.Conflict, *now)
	now, err = s.Catalog(t.Context())
	if err != nil || len(now.Namespaces) != 1 {
		t.Errorf("in the end there are %d namespaces (%v), want 1", len(now.Namespaces), err)
	}
}
