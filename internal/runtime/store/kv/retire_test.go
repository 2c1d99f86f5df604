package kv_test

import (
	"context"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/store/kv"
	"github.com/leasehold-dev/leasehold/internal/runtime/store/memdb"
)

// A deleted namespace leaves only its head and empty table, which prevent the reuse of its numbers.
func TestRetire(t *testing.T) {
	ctx := context.Background()
	for name, prepare := range map[string]func(w *writer){
		"with a log":                  func(w *writer) { w.mustAppend(t, 20) },
		"with a snapshot and a log":   func(w *writer) { w.mustAppend(t, 20); w.mustSave(t); w.mustAppend(t, 6) },
		"with a snapshot of all":      func(w *writer) { w.mustAppend(t, 20); w.mustSave(t) },
		"that had been there before":  func(w *writer) { w.mustAppend(t, 4); w.retire(t); w.mustAppend(t, 4) },
		"of a term that has ended":    func(w *writer) { w.mustAppend(t, 4); w.takeOver(t) },
		"with a batch of many pieces": func(w *writer) { w.mustAppend(t, 4000) },
	} {
		t.Run(name, func(t *testing.T) {
			db := &flakyDB{}
			w := newWriter(t, kv.New(db, kv.Config{Piece: 1000}))
			prepare(w)
			w.retire(t)
			keys, err := db.keys(ctx, "ns/")
			if err != nil || len(keys) != 2 {
				t.Errorf("remaining keys %q (%v)", keys, err)
			}
			state, err := w.s.Load(ctx, "n")
			if err != nil {
				t.Fatal(err)
			}
			if got, err := state.Replay(); err != nil || got.LSN() != w.table.LSN() || got.Newest() != w.table.Newest() {
				t.Errorf("the table is at lsn %d, generation %d (%v); want %d, %d", got.LSN(), got.Newest(), err, w.table.LSN(), w.table.Newest())
			}
			if past, err := w.s.History(ctx, "n", 0, 100); err != nil || len(past) > 0 {
				t.Errorf("history %v (%v)", past, err)
			}
			w.mustAppend(t, 2)
			if past, err := w.s.History(ctx, "n", 0, 100); err != nil || len(past) != 2 {
				t.Errorf("history after it is created again: %v (%v)", past, err)
			}
		})
	}
}

// Neither a deposed leader nor a catalog with the namespace removes its history.
func TestRetireRequiresTermAndRemoval(t *testing.T) {
	ctx := context.Background()
	w := newWriter(t, kv.New(&memdb.DB{}, kv.Config{}))
	w.mustAppend(t, 2)
	w.catalog(t, storage.Namespace{Name: "n", Deleted: true})
	w.catalog(t, storage.Namespace{Name: "n", Deleted: true}, storage.Namespace{Name: "o"})
	now, err := w.s.Catalog(ctx)
	if err != nil {
		t.Fatal(err)
	}
	w.takeOver(t)
	if outcome, err := w.s.SaveCatalog(ctx, &storage.Catalog{Version: now.Version, Term: w.term - 1}); outcome != storage.Conflict || err != nil {
		t.Errorf("a deposed leader's catalog: %v, %v", outcome, err)
	}
	if past, err := w.s.History(ctx, "n", 0, 100); err != nil || len(past) != 2 {
		t.Errorf("history %v (%v)", past, err)
	}
}

// catalog writes the catalog.
func (w *writer) catalog(t *testing.T, namespaces ...storage.Namespace) {
	t.Helper()
	now, err := w.s.Catalog(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := w.s.SaveCatalog(context.Background(), &storage.Catalog{Version: now.Version, Term: w.term, Namespaces: namespaces})
	if outcome != storage.Done {
		t.Fatalf("catalog: %v, %v", outcome, err)
	}
}

// retire deletes the namespace and removes it from the catalog.
func (w *writer) retire(t *testing.T) {
	t.Helper()
	w.catalog(t, storage.Namespace{Name: "n", Deleted: true})
	w.catalog(t)
}

func (w *writer) mustSave(t *testing.T) {
	t.Helper()
	if err := w.s.SaveSnapshot(context.Background(), w.snapshot()); err != nil {
		t.Fatal(err)
	}
}
