//go:build failpoints

package kv_test

import (
	"context"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/internal/runtime/store/kv"
	"github.com/leasehold-dev/leasehold/internal/runtime/store/memdb"
)

// grants returns n changes that grant one key each to an owner.
func grants(owner string, n int) (out []table.Change) {
	holder := &table.Holder{Owner: leasehold.OwnerID(owner), Session: leasehold.Session{1}, Addr: owner, Weight: 1}
	for i := range leasehold.LSN(n) {
		at := leasehold.Key(i)
		out = append(out, table.Change{LSN: i + 1, Kind: table.Granted, Range: leasehold.Range{Start: at, Limit: at + 1}, Generation: leasehold.Generation(i) + 1, Holder: holder})
	}
	return out
}

// A leader that crashes or is replaced between two pieces of a batch, or of a table that replaces a log,
// has written nothing visible.
func TestEveryPointOfLargeBatches(t *testing.T) {
	large := &storage.Batch{Namespace: "n", Term: 1, Changes: grants("first", 100)}
	whole := table.New()
	for i := range large.Changes {
		if err := whole.Apply(&large.Changes[i]); err != nil {
			t.Fatal(err)
		}
	}
	base := whole.Rebased(1000, false, func(leasehold.Range, table.Entry) bool { return true })
	for name, large := range map[string]*storage.Batch{"changes": large, "a table": {Namespace: "n", Term: 1, Base: base}} {
		t.Run(name, func(t *testing.T) {
			point := "store/piece-appended"
			if large.Base != nil {
				point = "store/base-piece-written"
			}
			everyPointOfALargeBatch(t, large, point)
		})
	}
}

func everyPointOfALargeBatch(t *testing.T, large *storage.Batch, point string) {
	for name, dies := range map[string]bool{"kill": true, "pause": false} {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(failpoint.Reset)
			db := &memdb.DB{}
			lead := func(term leasehold.Term) *kv.Store {
				s := kv.New(db, kv.Config{Piece: 1000})
				r, err := s.Record(t.Context(), true)
				if err != nil {
					t.Fatal(err)
				}
				if _, outcome, err := s.Swap(t.Context(), r.Version, storage.Record{Term: term, Leader: "m"}); outcome != storage.Done {
					t.Fatal(outcome, err)
				}
				return s
			}
			next := func() { // a write of another leader, meanwhile or later
				small := &storage.Batch{Namespace: "n", Term: 2, Changes: grants("second", 1)}
				if outcome, err := lead(2).Append(t.Context(), small); outcome != storage.Done {
					t.Error(outcome, err)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			failpoint.Once(point, func() {
				if dies {
					cancel()
				} else {
					next()
				}
			})
			outcome, err := lead(1).Append(ctx, large)
			if dies && outcome != storage.Unknown || !dies && outcome != storage.Conflict {
				t.Errorf("%v, %v", outcome, err)
			}
			if dies {
				next()
			}
			state, err := kv.New(db, kv.Config{}).Load(t.Context(), "n")
			if err != nil {
				t.Fatal(err)
			}
			if got, err := state.Replay(); err != nil || state.End() != 1 || got.LSN() != 1 {
				t.Errorf("the log ends at %d, want 1 (%v)", state.End(), err)
			}
		})
	}
}
