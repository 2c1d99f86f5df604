// Package storetest is the test suite of all stores: the guarantees that a manager group depends on.
package storetest

import (
	"context"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
)

// Run runs the suite. open returns an empty store, which the suite closes.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, store.Store)
	}{
		{"RecordRoundTrip", recordRoundTrip},
		{"SwapGuards", swapGuards},
		{"OneSwapperWins", oneSwapperWins},
		{"WatchHints", watchHints},
		{"CatalogRoundTrip", catalogRoundTrip},
		{"CatalogGuards", catalogGuards},
		{"AppendGuards", appendGuards},
		{"AppendAgain", appendAgain},
		{"NamespacesAreApart", namespacesAreApart},
		{"RandomHistories", randomHistories},
		{"Replacement", replacement},
		{"BigBatch", bigBatch},
		{"BigTable", bigTable},
		{"SnapshotOfAnOldTerm", snapshotOfAnOldTerm},
		{"SnapshotThatIsOlder", snapshotThatIsOlder},
		{"SnapshotAheadOfLog", snapshotAheadOfLog},
		{"History", history},
		{"ReadersSeeOneInstant", readersSeeOneInstant},
		{"NamesThatMakeNoSense", invalidNames},
		{"EndedContext", endedContext},
		{"Closed", closed},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := open(t)
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			})
			test.run(t, s)
		})
	}
}

// lead writes a leader record of a term.
func lead(t testing.TB, s store.Store, term leasehold.Term) storage.Version {
	t.Helper()
	now, err := s.Record(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	v, outcome, err := s.Swap(t.Context(), now.Version, storage.Record{Term: term, Leader: "m1", Session: leasehold.Session{1}})
	if err != nil || outcome != storage.Done {
		t.Fatalf("taking over: %v, %v", outcome, err)
	}
	return v
}

func wantOutcome(t testing.TB, what string, want, got storage.Outcome, err error) {
	t.Helper()
	if got != want || err != nil && want != storage.Unknown {
		t.Fatalf("%s: %v (%v), want %v", what, got, err, want)
	}
}

func tryAppend(t testing.TB, s store.Store, what string, want storage.Outcome, b storage.Batch) {
	t.Helper()
	outcome, err := s.Append(context.Background(), &b)
	wantOutcome(t, what, want, outcome, err)
}

func mustAppend(t testing.TB, s store.Store, b *storage.Batch) {
	t.Helper()
	tryAppend(t, s, "append", storage.Done, *b)
}

func save(t testing.TB, s store.Store, snap *storage.Snapshot) {
	t.Helper()
	if err := s.SaveSnapshot(t.Context(), snap); err != nil {
		t.Fatal(err)
	}
}
