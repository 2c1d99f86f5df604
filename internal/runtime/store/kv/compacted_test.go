package kv_test

import (
	"context"
	"errors"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/runtime/store/kv"
	"github.com/leasehold-dev/leasehold/internal/runtime/store/memdb"
)

// A compacting database loses a number of views after their first page.
type compacting struct {
	kv.DB
	left int
	lost int
}

func (d *compacting) View() kv.View { return &compactedView{d.DB.View(), d} }

type compactedView struct {
	kv.View
	db *compacting
}

// Scan loses the view after its first entry, like a page boundary.
func (v *compactedView) Scan(ctx context.Context, span kv.Span, each func(kv.Entry) error) error {
	seen := 0
	return v.View.Scan(ctx, span, func(e kv.Entry) error {
		if seen++; seen > 1 && v.db.left > 0 {
			v.db.left--
			v.db.lost++
			return kv.ErrViewLost
		}
		return each(e)
	})
}

// A read that loses its view by a compaction restarts with a new view, without missing or duplicate
// entries. The number of retries is limited.
func TestReadsBeginAgain(t *testing.T) {
	db := &compacting{DB: &memdb.DB{}}
	w := newWriter(t, kv.New(db, kv.Config{Piece: 1000}))
	for range 20 {
		w.mustAppend(t, 100)
	}
	for times, fails := range map[int]bool{0: false, 1: false, 3: false, 4: true} {
		db.left, db.lost = times, 0
		state, err := w.s.Load(t.Context(), "n")
		if fails != (err != nil) || fails != errors.Is(err, kv.ErrViewLost) || db.lost != times {
			t.Errorf("after %d compactions, %d during the read: %v", times, db.lost, err)
		}
		if err == nil {
			loaded, err := state.Replay()
			if err != nil || loaded.LSN() != w.table.LSN() || loaded.Newest() != w.table.Newest() || loaded.Len() != w.table.Len() {
				t.Errorf("after %d compactions the table differs: %v", times, err)
			}
		}
		db.left, db.lost = times, 0
		past, err := w.s.History(t.Context(), "n", 0, 500)
		if fails != (err != nil) || err == nil && (len(past) != 500 || past[0].Change.LSN != w.table.LSN()) {
			t.Errorf("after %d compactions, the newest of %d changes: %v", times, len(past), err)
		}
	}
}
