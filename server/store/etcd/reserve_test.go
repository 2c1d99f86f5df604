package etcd_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/server/store/etcd"
)

// grants returns n changes of a few hundred bytes each. If n is even, all keys are vacant
// afterwards.
func grants(after leasehold.LSN, n int) []table.Change {
	var out []table.Change
	for i := range n {
		lsn := after + leasehold.LSN(i) + 1
		h := &table.Holder{Owner: leasehold.OwnerID(fmt.Sprint("o", lsn)), Session: leasehold.Session{1}, Addr: strings.Repeat("x", 200), Weight: 1}
		c := table.Change{LSN: lsn, Kind: table.Granted, Generation: leasehold.Generation(lsn), Holder: h}
		if i%2 == 1 {
			c.Kind, c.Generation, c.Holder = table.Vacated, out[i-1].Generation, out[i-1].Holder
		}
		out = append(out, c)
	}
	return out
}

// TestReserve: a store that is full of live data accepts leadership renewals and lease ends, and
// rejects new namespaces and grants. Deleting namespaces frees space.
func TestReserve(t *testing.T) {
	m := embed(t, etcd.EmbedConfig{Dir: t.TempDir(), Quota: etcd.MinQuota, Logger: quiet(t)})
	term := takeOver(t, m, "m1")
	catalog := func(ctx context.Context, names []string, deleted bool) (storage.Outcome, error) {
		now, err := m.Catalog(ctx)
		if err != nil {
			t.Fatal(err)
		}
		next := &storage.Catalog{Version: now.Version, Term: term}
		for _, name := range names {
			next = next.With(storage.Namespace{Name: leasehold.Namespace(name), Deleted: deleted})
		}
		return m.SaveCatalog(ctx, next)
	}
	add := func(ns string, after leasehold.LSN, changes []table.Change) (storage.Outcome, error) {
		return m.Append(t.Context(), &storage.Batch{Namespace: leasehold.Namespace(ns), Term: term, Prev: after, Changes: changes})
	}
	held := grants(0, 1)
	if outcome, err := add("held", 0, held); outcome != storage.Done {
		t.Fatal(outcome, err)
	}
	var names []string
	fill := func() error {
		for len(names) < 1000 {
			name := fmt.Sprintf("n%03d", len(names))
			if _, err := add(name, 0, grants(0, 500)); err != nil {
				return err
			}
			names = append(names, name)
		}
		return nil
	}
	full := fill()
	if len(names) < 20 || leasehold.KindOf(full) != leasehold.ErrLimit || !strings.Contains(fmt.Sprint(full), "write rejected") {
		t.Fatalf("after %d namespaces: %v, want an error of kind limit that contains 'write rejected'", len(names), full)
	}
	for n := range 200 { // the writes of a leader in some minutes
		r, err := m.Record(t.Context(), true)
		if err != nil {
			t.Fatal(err)
		}
		r.Beat++
		if _, outcome, err := m.Swap(t.Context(), r.Version, r); outcome != storage.Done {
			t.Fatalf("renewal %d: %v, %v", n, outcome, err)
		}
	}
	ended := held[0]
	ended.LSN, ended.Kind, ended.Cause = 2, table.Vacated, leasehold.CauseExpired
	if outcome, err := add("held", 1, []table.Change{ended}); outcome != storage.Done {
		t.Errorf("the end of a lease: %v, %v", outcome, err)
	}
	tries := 0
	eventually(t, "the rejection of a new namespace", func(ctx context.Context) error {
		tries++
		_ = fill() // compaction may have freed space
		outcome, err := catalog(ctx, names[:tries], false)
		if outcome != storage.Unknown || leasehold.KindOf(err) != leasehold.ErrLimit {
			return fmt.Errorf("%v, %w", outcome, err)
		}
		return nil
	})
	for _, step := range [][]string{names, nil} { // marked as deleted, then removed
		if outcome, err := catalog(t.Context(), step, true); outcome != storage.Done {
			t.Fatalf("deleting: %v, %v", outcome, err)
		}
	}
	eventually(t, "a grant after space is free", func(context.Context) error {
		_, err := add("held", 2, grants(2, 1))
		return err
	})
}
