package kv_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/store/kv"
	"pgregory.net/rapid"
)

// A writer is a leader that appends to one namespace, with its expected content.
type writer struct {
	s       *kv.Store
	version storage.Version
	term    leasehold.Term
	table   *table.Table
}

func newWriter(t testing.TB, s *kv.Store) *writer {
	t.Helper()
	w := &writer{s: s, table: table.New()}
	w.takeOver(t)
	return w
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// takeOver starts a new term.
func (w *writer) takeOver(t fataler) {
	t.Helper()
	w.term++
	v, outcome, err := w.s.Swap(context.Background(), w.version, storage.Record{Term: w.term, Leader: "m"})
	if outcome != storage.Done {
		t.Fatalf("taking over: %v, %v", outcome, err)
	}
	w.version = v
}

// batch returns n changes: alternating grants and releases of the key space.
func (w *writer) batch(n int) *storage.Batch {
	b := &storage.Batch{Namespace: "n", Term: w.term, Prev: w.table.LSN()}
	next := w.table.Clone()
	for range n {
		c := table.Change{LSN: next.LSN() + 1, Kind: table.Granted, Generation: next.Newest() + 1}
		c.Holder = &table.Holder{Owner: "o", Session: leasehold.Session{byte(w.term), byte(c.LSN), 1}, Addr: "a", Weight: 1}
		if _, e := next.At(0); !e.Vacant() {
			c.Kind, c.Generation, c.Holder = table.Vacated, e.Generation, e.Holder
		}
		if err := next.Apply(&c); err != nil {
			panic(err)
		}
		b.Changes = append(b.Changes, c)
	}
	return b
}

// took applies a batch that is in the log.
func (w *writer) took(b *storage.Batch) {
	for i := range b.Changes {
		if err := w.table.Apply(&b.Changes[i]); err != nil {
			panic(err)
		}
	}
}

func (w *writer) snapshot() *storage.Snapshot {
	return &storage.Snapshot{Namespace: "n", Term: w.term, Table: w.table.Clone()}
}

func (w *writer) mustAppend(t fataler, n int) {
	t.Helper()
	b := w.batch(n)
	if outcome, err := w.s.Append(context.Background(), b); outcome != storage.Done {
		t.Fatalf("append: %v, %v", outcome, err)
	}
	w.took(b)
}

func (w *writer) check(t fataler) {
	t.Helper()
	state, err := w.s.Load(context.Background(), "n")
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	got, err := state.Replay()
	if err != nil {
		t.Fatalf("replay: %v", err)
	}
	if diff := cmp.Diff(rows(w.table), rows(got)); diff != "" {
		t.Fatalf("loaded (-want +got):\n%s", diff)
	}
}

func rows(t *table.Table) []string {
	out := []string{fmt.Sprint("lsn ", t.LSN(), " newest ", t.Newest())}
	for r, e := range t.All() {
		out = append(out, fmt.Sprint(r, e.Generation, e.Lost, e.Holder))
	}
	return out
}

// With lost and delayed writes of whole batches or parts, the log consists of the batches that the leaders know to be
// committed.
func TestFaults(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ctx := t.Context()
		db := &flakyDB{}
		// Pieces so small that most batches and snapshots have several.
		w := newWriter(t, kv.New(db, kv.Config{Piece: rapid.SampledFrom([]int{40, 300}).Draw(rt, "piece"), History: 10}))
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			step := rapid.IntRange(0, 9).Draw(rt, "step")
			switch {
			case step == 0:
				w.takeOver(rt)
			case step == 1 && len(db.late) > 0:
				if err := db.arrive(ctx, rapid.IntRange(0, len(db.late)-1).Draw(rt, "arrives")); err != nil {
					rt.Fatalf("%v", err)
				}
			case step <= 3:
				db.fate = drawFate(rt)
				_ = w.s.SaveSnapshot(ctx, w.snapshot()) // its outcome does not matter
				db.fate = nil
			default:
				appendAsLeadersDo(ctx, rt, db, w, rapid.IntRange(1, 12).Draw(rt, "changes"))
			}
			w.check(rt)
		}
	})
}

func drawFate(t *rapid.T) func() fate {
	return func() fate {
		return fate(max(0, rapid.IntRange(-12, int(isLate)).Draw(t, "fate")))
	}
}

// appendAsLeadersDo appends a batch like a leader: after an unknown outcome it reads the end of the log,
// and retries if necessary. It may crash; its successor reads the end of the log.
func appendAsLeadersDo(ctx context.Context, t *rapid.T, db *flakyDB, w *writer, n int) {
	b := w.batch(n)
	for range 10 {
		db.fate = drawFate(t)
		outcome, err := w.s.Append(ctx, b)
		db.fate = nil
		if outcome == storage.Done {
			w.took(b)
			return
		}
		if rapid.IntRange(0, 3).Draw(t, "dies") == 0 {
			w.takeOver(t) // fences writes of the old leader
			if end, err := w.s.End(ctx, "n"); err != nil {
				t.Fatalf("%v", err)
			} else if end.LSN == b.Last() {
				w.took(b)
			} else if end.LSN != b.Prev {
				t.Fatalf("the log ends at %d, in the middle of a batch from %d to %d", end.LSN, b.Prev, b.Last())
			}
			return
		}
		if len(db.late) > 0 && rapid.Bool().Draw(t, "arrives while waiting") {
			if err := db.arrive(ctx, 0); err != nil {
				t.Fatalf("%v", err)
			}
		}
		end, endErr := w.s.End(ctx, "n")
		switch {
		case endErr != nil:
			t.Fatalf("%v", endErr)
		case end.LSN == b.Last():
			w.took(b)
			return
		case end.LSN != b.Prev || outcome == storage.Conflict:
			t.Fatalf("%v (%v), and the log ends at %d, neither %d nor %d", outcome, err, end.LSN, b.Prev, b.Last())
		}
	}
	db.fate = nil
	w.takeOver(t)
}

// A snapshot removes the log before it except for the newest changes, and the pieces of older snapshots, visible or
// not.
func TestTrim(t *testing.T) {
	db := &flakyDB{}
	const keep = 3 * kv.MaxPieceChanges
	w := newWriter(t, kv.New(db, kv.Config{History: keep, Piece: 4096}))
	for range 40 {
		w.mustAppend(t, 1000)
	}
	before, err := db.keys(t.Context(), "ns/n/log/")
	if err != nil {
		t.Fatal(err)
	}
	orphan := kv.Txn{Puts: []kv.Entry{{Key: "ns/n/snapshot/00000000000000000007/000000", Value: []byte("x")}}}
	if _, err := db.DB.Commit(t.Context(), orphan); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.s.SaveSnapshot(t.Context(), w.snapshot()); err != nil {
			t.Fatal(err)
		}
		w.check(t)
		w.mustAppend(t, 1)
	}
	after, err := db.keys(t.Context(), "ns/n/log/")
	if err != nil || len(after) > len(before)/2 {
		t.Errorf("of %d pieces of the log %d are left (%v)", len(before), len(after), err)
	}
	snapshots, err := db.keys(t.Context(), "ns/n/snapshot/")
	if err != nil || len(snapshots) != 1 || !strings.Contains(snapshots[0], "40001") {
		t.Errorf("snapshots %q (%v)", snapshots, err)
	}
	past, err := w.s.History(t.Context(), "n", 0, 1<<20)
	if err != nil || len(past) < keep || len(past) > keep+10 {
		t.Errorf("%d changes are retained (%v), want %d", len(past), err, keep)
	}
	if last := past[len(past)-1].Change.LSN; int(last) != int(w.table.LSN())-len(past)+1 {
		t.Errorf("there is a gap: the %d newest changes begin with %d", len(past), last)
	}
}

// Requests stay far below the limits of etcd for any size of batches and names.
func TestRequestsAreSmall(t *testing.T) {
	db := &flakyDB{}
	w := newWriter(t, kv.New(db, kv.Config{}))
	b := w.batch(30_000)
	long := strings.Repeat("x", leasehold.MaxAddrLen)
	for i := range b.Changes {
		h := *b.Changes[i].Holder
		h.Addr, h.Process, h.Owner = long, long, leasehold.OwnerID(strings.Repeat("y", leasehold.MaxOwnerIDLen))
		b.Changes[i].Holder = &h
	}
	if outcome, err := w.s.Append(t.Context(), b); outcome != storage.Done {
		t.Fatal(outcome, err)
	}
	if db.size > kv.MaxPiece+1024 || db.ops > 9 {
		t.Errorf("a request had %d bytes and %d operations", db.size, db.ops)
	}
	state, err := w.s.Load(t.Context(), "n")
	if err != nil || len(state.Changes) != len(b.Changes) {
		t.Errorf("%v", err)
	}
}

// An append is one transaction if the head is known, also after a snapshot.
func TestAppendCostsOneTransaction(t *testing.T) {
	db := &flakyDB{}
	w := newWriter(t, kv.New(db, kv.Config{}))
	w.mustAppend(t, 1)
	if err := w.s.SaveSnapshot(t.Context(), w.snapshot()); err != nil {
		t.Fatal(err)
	}
	commits := 0
	db.fate = func() fate { commits++; return arrives }
	w.mustAppend(t, 100)
	if commits != 1 {
		t.Errorf("%d transactions, want 1", commits)
	}
}

// Damaged values are errors.
func TestDamage(t *testing.T) {
	for name, spoil := range map[string]kv.Txn{
		"a piece of the log is gone":    {Deletes: []kv.Span{{From: "ns/n/log/00000000000000000011", To: "ns/n/log/00000000000000000012"}}},
		"the end of the log is gone":    {Deletes: []kv.Span{{From: "ns/n/log/00000000000000000021", To: "ns/n/log0"}}},
		"a piece of the log is garbage": {Puts: []kv.Entry{{Key: "ns/n/log/00000000000000000011", Value: []byte("\xff")}}},
		"the snapshot is gone":          {Deletes: []kv.Span{{From: "ns/n/snapshot/", To: "ns/n/snapshot0"}}},
		"the snapshot is garbage":       {Puts: []kv.Entry{{Key: "ns/n/snapshot/00000000000000000010/000000", Value: []byte("\xff")}}},
		"the head is garbage":           {Puts: []kv.Entry{{Key: "ns/n/head", Value: []byte("\xff")}}},
		"the term is garbage":           {Puts: []kv.Entry{{Key: "term", Value: []byte("x")}}},
	} {
		t.Run(name, func(t *testing.T) {
			db := &flakyDB{}
			w := newWriter(t, kv.New(db, kv.Config{}))
			w.mustAppend(t, 10)
			if err := w.s.SaveSnapshot(t.Context(), w.snapshot()); err != nil {
				t.Fatal(err)
			}
			w.mustAppend(t, 10)
			w.mustAppend(t, 10)
			if _, err := db.DB.Commit(t.Context(), spoil); err != nil {
				t.Fatal(err)
			}
			if _, err := w.s.Load(t.Context(), "n"); leasehold.KindOf(err) != leasehold.ErrInternal {
				t.Errorf("error %v, want one of kind %v", err, leasehold.ErrInternal)
			}
		})
	}
}

// Too large a catalog is a final conflict.
func TestCatalogTooLarge(t *testing.T) {
	db := &flakyDB{}
	w := newWriter(t, kv.New(db, kv.Config{}))
	big := &storage.Catalog{Term: w.term, Namespaces: []storage.Namespace{{Name: "n", Policy: strings.Repeat("x", 2<<20)}}}
	if outcome, err := w.s.SaveCatalog(t.Context(), big); outcome != storage.Conflict || leasehold.KindOf(err) != leasehold.ErrLimit {
		t.Errorf("%v, %v", outcome, err)
	}
}

// During the write of a snapshot's pieces a newer one becomes visible, or another leader takes over.
func TestSnapshotIsOvertaken(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(*writer)
		shown     string
	}{
		"by a newer one": {func(w *writer) {
			w.mustAppend(t, 10)
			if err := w.s.SaveSnapshot(t.Context(), w.snapshot()); err != nil {
				t.Error(err)
			}
			w.mustAppend(t, 1)
		}, "ns/n/snapshot/00000000000000000020/000000"},
		"by a new leader": {func(w *writer) { w.takeOver(t) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			db := &flakyDB{}
			w := newWriter(t, kv.New(db, kv.Config{Piece: 10}))
			w.mustAppend(t, 10)
			old := w.snapshot()
			commits := 0
			db.fate = func() fate {
				if commits++; commits == 2 { // between the first two pieces
					c.meanwhile(w)
				}
				return arrives
			}
			if err := w.s.SaveSnapshot(t.Context(), old); err != nil {
				t.Fatal(err)
			}
			db.fate = nil
			w.check(t)
			pieces, err := db.keys(t.Context(), "ns/n/snapshot/")
			if err != nil {
				t.Fatal(err)
			}
			if pieces[len(pieces)-1] < c.shown {
				t.Errorf("pieces %q, want %q among them", pieces, c.shown)
			}
			if c.shown == "" && len(pieces) != 1 {
				t.Errorf("a deposed leader has written more pieces: %q", pieces)
			}
			state, err := w.s.Load(t.Context(), "n")
			if err != nil || (state.Table != nil) != (c.shown != "") || state.Table != nil && state.Table.LSN() != 20 {
				t.Errorf("a snapshot is loaded: %t (%v)", state.Table != nil, err)
			}
		})
	}
}
