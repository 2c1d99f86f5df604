package storetest

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
)

const ns leasehold.Namespace = "presence"

// A pen generates a history: it has the table and creates changes that apply to it.
type pen struct {
	t     testing.TB
	ns    leasehold.Namespace
	term  leasehold.Term
	table *table.Table
}

func newPen(t testing.TB, term leasehold.Term) *pen {
	return &pen{t: t, ns: ns, term: term, table: table.New()}
}

// leadingPen returns a pen of the leader of a term.
func leadingPen(t testing.TB, s store.Store, term leasehold.Term) *pen {
	t.Helper()
	lead(t, s, term)
	return newPen(t, term)
}

// batch returns a batch with the change of each function.
func (p *pen) batch(changes ...func(*table.Change)) *storage.Batch {
	p.t.Helper()
	b := &storage.Batch{Namespace: p.ns, Term: p.term, Prev: p.table.LSN()}
	for _, fill := range changes {
		c := table.Change{LSN: p.table.LSN() + 1, Generation: p.table.Newest() + 1}
		fill(&c)
		if err := p.table.Apply(&c); err != nil {
			p.t.Fatal(err)
		}
		b.Changes = append(b.Changes, c)
	}
	return b
}

func (p *pen) pass(cell, cells int, to *table.Holder) func(*table.Change) {
	return func(c *table.Change) {
		c.Range = cellRange(cell, cells)
		_, e := p.table.At(c.Range.Start)
		c.Kind, c.Holder, c.From = table.Moved, to, e.Holder
	}
}

// toggle grants the range of a cell if it is vacant, otherwise it vacates it.
func (p *pen) toggle(cell, cells int, to *table.Holder) func(*table.Change) {
	return func(c *table.Change) {
		c.Range = cellRange(cell, cells)
		c.Kind, c.Holder = table.Granted, to
		if _, e := p.table.At(c.Range.Start); !e.Vacant() {
			c.Kind, c.Holder, c.Generation, c.Cause = table.Vacated, e.Holder, e.Generation, leasehold.CauseExpired
		}
	}
}

// next returns a batch of n changes of consecutive cells. Every third cell moves between owners; the others
// are granted and vacated in turn.
func (p *pen) next(n int) *storage.Batch {
	p.t.Helper()
	const cells = 64
	var changes []func(*table.Change)
	for i := range n {
		lsn := int(p.table.LSN()) + i
		at := lsn % cells
		changes = append(changes, func(c *table.Change) {
			if _, e := p.table.At(cellRange(at, cells).Start); at%3 == 0 && !e.Vacant() {
				p.pass(at, cells, holder((lsn/cells+at)%5))(c)
				return
			}
			p.toggle(at, cells, holder(at%5))(c)
		})
	}
	return p.batch(changes...)
}

// replacement returns a batch that replaces the log with the table at a much higher LSN.
func (p *pen) replacement() *storage.Batch {
	n := uint64(p.table.LSN()) + 1<<40
	b := &storage.Batch{Namespace: p.ns, Term: p.term, Prev: p.table.LSN()}
	b.Base = p.table.Rebased(uint64(n), false, func(r leasehold.Range, _ table.Entry) bool { return r.Start%2 == 0 })
	p.table = b.Base.Clone()
	return b
}

func (p *pen) snapshot() *storage.Snapshot {
	return &storage.Snapshot{Namespace: p.ns, Term: p.term, Table: p.table.Clone()}
}

func cellRange(i, cells int) leasehold.Range {
	width := leasehold.Key(1<<63/uint64(cells)) * 2
	r := leasehold.Range{Start: leasehold.Key(i) * width}
	if i+1 < cells {
		r.Limit = leasehold.Key(i+1) * width
	}
	return r
}

func holder(i int) *table.Holder {
	return &table.Holder{
		Owner: leasehold.OwnerID(fmt.Sprintf("owner-%04d", i)), Session: leasehold.Session{byte(i), byte(i >> 8), 1},
		Addr: fmt.Sprintf("10.0.%d.%d:7000", i/256, i%256), Weight: 1, Process: "boot/1/2",
	}
}

// contents returns the content of a table in a comparable form.
func contents(t *table.Table) any {
	return struct {
		LSN    leasehold.LSN
		Newest leasehold.Generation
		Rows   map[leasehold.Range]table.Entry
	}{t.LSN(), t.Newest(), maps.Collect(t.All())}
}

// A fataler is a testing.TB or a rapid.T.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkLoad loads a namespace and compares it with a table, and the log's end.
func checkLoad(t testing.TB, s store.Store, p *pen) {
	t.Helper()
	loadAndCompare(t, t, s, p)
}

func load(t fataler, tb testing.TB, s store.Store, p *pen) (*storage.State, *table.Table) {
	t.Helper()
	state, err := s.Load(tb.Context(), p.ns)
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	got, err := state.Replay()
	if err != nil {
		t.Fatalf("replay: %v", err)
	}
	return state, got
}

func loadAndCompare(t fataler, tb testing.TB, s store.Store, p *pen) {
	t.Helper()
	state, got := load(t, tb, s, p)
	if diff := cmp.Diff(contents(p.table), contents(got)); diff != "" {
		t.Fatalf("loaded table (-want +got):\n%s", diff)
	}
	end, err := s.End(tb.Context(), p.ns)
	if want := (storage.End{Term: p.term, LSN: p.table.LSN()}); err != nil || end != want {
		t.Fatalf("the end is %v (%v), want %v", end, err, want)
	}
	if state.Term != p.term || state.End() != p.table.LSN() {
		t.Fatalf("loaded term %d and lsn %d, want %d and %d", state.Term, state.End(), p.term, p.table.LSN())
	}
}
