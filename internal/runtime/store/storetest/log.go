package storetest

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
)

func appendGuards(t *testing.T, s store.Store) {
	try := func(what string, want storage.Outcome, b storage.Batch) {
		t.Helper()
		tryAppend(t, s, what, want, b)
	}
	p := newPen(t, 2)
	b := *p.next(3)
	try("without a leader", storage.Conflict, b)
	lead(t, s, 2)
	other := b
	other.Term = 1
	try("an older term", storage.Conflict, other)
	other.Term = 3
	try("a term to come", storage.Conflict, other)
	other = b
	other.Prev = 5
	try("a gap", storage.Conflict, other)
	try("the first", storage.Done, b)
	other = *p.next(2)
	other.Prev--
	try("an overlap", storage.Conflict, other)
	other.Prev++
	lead(t, s, 3)
	try("a leader of the past", storage.Conflict, other)
	other.Term = 3
	try("its successor", storage.Done, other)
	p.term = 3
	checkLoad(t, s, p)
}

// appendAgain: after an unknown outcome a retry of the batch returns the outcome.
func appendAgain(t *testing.T, s store.Store) {
	p := leadingPen(t, s, 1)
	b := p.next(5)
	mustAppend(t, s, b)
	for range 2 {
		tryAppend(t, s, "the same batch again", storage.Conflict, *b)
		end, err := s.End(t.Context(), ns)
		if want := (storage.End{Term: 1, LSN: b.Last()}); err != nil || end != want {
			t.Fatalf("the end is %v (%v), want %v", end, err, want)
		}
	}
	checkLoad(t, s, p)
}

func namespacesAreApart(t *testing.T, s store.Store) {
	lead(t, s, 1)
	var pens []*pen
	for i, name := range []leasehold.Namespace{"a", "a.b", "a-b", "a0"} { // names that sort around a separator
		p := newPen(t, 1)
		p.ns = name
		mustAppend(t, s, p.next(i+1))
		pens = append(pens, p)
	}
	save(t, s, pens[0].snapshot())
	for _, p := range pens {
		checkLoad(t, s, p)
	}
	empty := newPen(t, 1)
	empty.ns = "b"
	checkLoad(t, s, empty)
}

// replacement: a table replaces a log, as a batch with the same guards. Changes continue after it.
func replacement(t *testing.T, s store.Store) {
	p := leadingPen(t, s, 2)
	first := p.next(30)
	mustAppend(t, s, first)
	save(t, s, p.snapshot())
	second := p.next(30)
	mustAppend(t, s, second)
	log := slices.Concat(first.Changes, second.Changes)
	before := *p
	try := func(what string, want storage.Outcome, b storage.Batch) {
		t.Helper()
		outcome, err := s.Append(t.Context(), &b)
		if outcome != want || want == storage.Done && err != nil {
			t.Fatalf("%s: %v (%v), want %v", what, outcome, err, want)
		}
	}
	b := p.replacement()
	b.Unfinished = true
	other := *b
	other.Term = 1
	try("an older term", storage.Conflict, other)
	other = *b
	other.Prev--
	try("an older log", storage.Conflict, other)
	other = *b
	other.Base = before.table.Clone() // at the very end
	try("a table that is not above the log", storage.Conflict, other)
	other = *b
	other.Changes = []table.Change{{}}
	try("changes with it", storage.Conflict, other)
	checkLoad(t, s, &before)

	try("the replacement", storage.Done, *b)
	checkLoad(t, s, p)
	try("the same again", storage.Conflict, *b)
	if end, err := s.End(t.Context(), ns); err != nil || end != (storage.End{Term: 2, LSN: b.Last()}) {
		t.Errorf("the end is %v (%v), want %d", end, err, b.Last())
	}
	checkHistory(t, t, s, ns, log)
	unfinished := func(want bool) {
		t.Helper()
		if state, err := s.Load(t.Context(), ns); err != nil || state.Unfinished != want {
			t.Errorf("unfinished: %t (%v), want %t", state.Unfinished, err, want)
		}
	}
	unfinished(true)
	try("its end", storage.Done, *p.replacement())
	unfinished(false)
	checkLoad(t, s, p)
	checkHistory(t, t, s, ns, log)
	next := p.next(20)
	mustAppend(t, s, next)
	save(t, s, before.snapshot()) // a late snapshot
	checkLoad(t, s, p)
	checkHistory(t, t, s, ns, slices.Concat(log, next.Changes))
	save(t, s, p.snapshot())
	last := p.next(5)
	mustAppend(t, s, last)
	checkLoad(t, s, p)
	log = slices.Concat(next.Changes, last.Changes)
	mustAppend(t, s, p.replacement())
	checkLoad(t, s, p)
	checkHistory(t, t, s, ns, log) // the history ends at the replacement before
}

// randomHistories: loading returns the appended changes, for random batches, leaders and snapshots.
func randomHistories(t *testing.T, s store.Store) {
	term := leasehold.Term(1)
	lead(t, s, term)
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		p := newPen(t, term)
		p.ns = leasehold.Namespace(fmt.Sprintf("run-%d", run))
		var log, earlier []table.Change
		for range rapid.IntRange(1, 8).Draw(rt, "steps") {
			switch rapid.IntRange(0, 7).Draw(rt, "step") {
			case 0:
				save(t, s, p.snapshot())
			case 1:
				mustAppend(t, s, p.replacement())
				if len(log) > 0 {
					log, earlier = nil, log
				}
			case 2:
				term++
				lead(t, s, term)
				p.term = term
			default:
				b := p.next(rapid.IntRange(1, 40).Draw(rt, "changes"))
				mustAppend(t, s, b)
				log = append(log, b.Changes...)
			}
		}
		loadAndCompare(rt, t, s, p)
		checkHistory(rt, t, s, p.ns, slices.Concat(earlier, log))
	})
}

// checkHistory reads a log that was not trimmed, newest first, in two parts.
func checkHistory(t fataler, tb testing.TB, s store.Store, name leasehold.Namespace, log []table.Change) {
	t.Helper()
	half := len(log) / 2
	newer, err := s.History(tb.Context(), name, 0, len(log)-half)
	if err != nil {
		t.Fatalf("history: %v", err)
	}
	var older []store.Past
	if half > 0 { // there is no change before lsn 1, and 0 means the end
		if older, err = s.History(tb.Context(), name, log[half].LSN, len(log)); err != nil {
			t.Fatalf("history: %v", err)
		}
	}
	past := slices.Concat(newer, older)
	if len(past) != len(log) {
		t.Fatalf("%d changes are retained, want %d", len(past), len(log))
	}
	for i := range past {
		want, got := log[len(log)-1-i], past[i].Change
		if got.String() != want.String() || past[i].At.IsZero() {
			t.Fatalf("change %d from the end, at %v, is %v, want %v", i, past[i].At, got.String(), want.String())
		}
	}
}

// checkLoadBig is checkLoad for tables that are too large to print.
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

// bigBatch appends a batch of 20,000 changes with 2,000 holders with long names, then a small one.
func bigBatch(t *testing.T, s store.Store) {
	p := leadingPen(t, s, 1)
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

// bigTable appends a table of 2,000 owners with 64 ranges each, then the moves of a join.
func bigTable(t *testing.T, s store.Store) {
	p := leadingPen(t, s, 1)
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
