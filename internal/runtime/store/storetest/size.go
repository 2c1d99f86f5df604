package storetest

import (
	"reflect"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
)

// checkLoadBig is checkLoad for tables that are too large to be printed.
func checkLoadBig(t *testing.T, s store.Store, p *pen) {
	t.Helper()
	_, got := load(t, t, s, p)
	if got.LSN() != p.table.LSN() || got.Newest() != p.table.Newest() || got.Len() != p.table.Len() {
		t.Fatalf("loaded lsn %d, generation %d, %d ranges, want %d, %d, %d",
			got.LSN(), got.Newest(), got.Len(), p.table.LSN(), p.table.Newest(), p.table.Len())
	}
	for r, want := range p.table.All() {
		if at, e := got.At(r.Start); at != r || !reflect.DeepEqual(e, want) {
			t.Fatalf("%v is loaded as %v, %+v, want %+v", r, at, e, want)
		}
	}
}

// bigBatch is one batch of 20,000 changes by 2,000 holders with long names,
// and then a small one.
func bigBatch(t *testing.T, s store.Store) {
	lead(t, s, 1)
	p := newPen(t, 1)
	const cells = 20_000
	var changes []func(*table.Change)
	for i := range cells {
		changes = append(changes, p.toggle(i, cells, holder(i%2000)))
	}
	b := p.batch(changes...)
	mustAppend(t, s, b)
	tryAppend(t, s, "the same batch again", storage.Conflict, *b)
	mustAppend(t, s, p.batch(p.toggle(0, cells, nil)))
	checkLoadBig(t, s, p)
	past, err := s.History(t.Context(), ns, 10_000, 100)
	if err != nil || len(past) != 100 || past[0].Change.LSN != 9_999 || past[99].Change.LSN != 9_900 {
		t.Errorf("%d changes from the middle (%v)", len(past), err)
	}
}

// bigTable is 2,000 owners with 64 ranges each, which a join then moves.
func bigTable(t *testing.T, s store.Store) {
	lead(t, s, 1)
	p := newPen(t, 1)
	const owners, cells = 2000, 2000 * 64
	holders := make([]*table.Holder, owners)
	for i := range holders {
		holders[i] = holder(i)
	}
	var changes []func(*table.Change)
	for i := range cells {
		changes = append(changes, p.toggle(i, cells, holders[i%owners]))
	}
	mustAppend(t, s, p.batch(changes...))
	checkLoadBig(t, s, p)
	save(t, s, p.snapshot())
	newcomer := holder(owners)
	changes = changes[:0]
	for i := 0; i < cells; i += owners { // one range of each neighbour
		changes = append(changes, p.toggle(i, cells, nil), p.toggle(i, cells, newcomer))
	}
	mustAppend(t, s, p.batch(changes...))
	checkLoadBig(t, s, p)
	if state, err := s.Load(t.Context(), ns); err != nil || state.Table == nil || state.Table.LSN() != leasehold.LSN(cells) {
		t.Errorf("the snapshot is not loaded: %v", err)
	}
}
