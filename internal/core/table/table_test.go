package table_test

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

var (
	ann = &table.Holder{Owner: "ann", Session: leasehold.Session{0xa1}, Addr: "a", Weight: 1}
	bob = &table.Holder{Owner: "bob", Session: leasehold.Session{0xb2}, Addr: "b", Weight: 1}
)

func span(start, limit leasehold.Key) leasehold.Range {
	return leasehold.Range{Start: start, Limit: limit}
}

func grant(lsn leasehold.LSN, r leasehold.Range, g leasehold.Generation, to *table.Holder) table.Change {
	return table.Change{LSN: lsn, Kind: table.Granted, Range: r, Generation: g, Holder: to}
}

func vacate(lsn leasehold.LSN, r leasehold.Range, g leasehold.Generation, from *table.Holder) table.Change {
	return table.Change{LSN: lsn, Kind: table.Vacated, Range: r, Generation: g, Holder: from, Cause: leasehold.CauseExpired}
}

func move(lsn leasehold.LSN, r leasehold.Range, g leasehold.Generation, from, to *table.Holder) table.Change {
	return table.Change{LSN: lsn, Kind: table.Moved, Range: r, Generation: g, Holder: to, From: from}
}

// A row is a range and its entry in a short form.
type row struct {
	Range leasehold.Range
	Gen   leasehold.Generation
	Owner leasehold.OwnerID
	Lost  leasehold.LSN
}

func rows(t *table.Table) []row {
	var out []row
	for r, e := range t.All() {
		line := row{Range: r, Gen: e.Generation, Lost: e.Lost}
		if !e.Vacant() {
			line.Owner = e.Holder.Owner
		}
		out = append(out, line)
	}
	return out
}

func apply(t *testing.T, to *table.Table, changes ...table.Change) *table.Table {
	t.Helper()
	for i := range changes {
		if err := to.Apply(&changes[i]); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

func checkRows(t *testing.T, tab *table.Table, want ...row) {
	t.Helper()
	if diff := cmp.Diff(want, rows(tab)); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	if tab.Len() != len(want) {
		t.Errorf("it has %d ranges, want %d", tab.Len(), len(want))
	}
}

func TestNew(t *testing.T) {
	tab := table.New()
	checkRows(t, tab, row{Range: leasehold.All})
	if tab.LSN() != 0 || tab.Newest() != 0 {
		t.Errorf("it is at lsn %d, newest generation %d, want 0 and 0", tab.LSN(), tab.Newest())
	}
}

// held returns the table for TestApplyRefuses: ann has 10 to 20, bob had 20 to 30, the newest
// generation is 7.
func held(t *testing.T) *table.Table {
	t.Helper()
	return apply(t, table.New(),
		grant(1, span(10, 20), 5, ann), grant(2, span(20, 30), 7, bob), vacate(3, span(20, 30), 7, bob))
}

func TestApplyRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		change table.Change
		want   string
	}{
		{
			"duplicate change", grant(3, span(0, 5), 8, ann),
			`apply change "lsn 3: 0000000000000000-0000000000000005@8 goes to ann/a1000000": table is at lsn 3`,
		},
		{
			"missing change", grant(5, span(0, 5), 8, ann),
			`apply change "lsn 5: 0000000000000000-0000000000000005@8 goes to ann/a1000000": table is at lsn 3`,
		},
		{
			"grant of an empty range", grant(4, span(5, 5), 8, ann),
			`apply change "lsn 4: 0000000000000005-0000000000000005@8 goes to ann/a1000000": change is incomplete`,
		},
		{
			"grant without a holder", grant(4, span(0, 5), 8, nil),
			`apply change "lsn 4: 0000000000000000-0000000000000005@8 goes to <nil>": change is incomplete`,
		},
		{
			"grant without a generation", grant(4, span(0, 5), 0, ann),
			`apply change "lsn 4: 0000000000000000-0000000000000005@0 goes to ann/a1000000": change is incomplete`,
		},
		{
			"grant with the newest generation", grant(4, span(0, 5), 7, ann),
			`apply change "lsn 4: 0000000000000000-0000000000000005@7 goes to ann/a1000000": generation 7 is not newer than 7`,
		},
		{
			"grant with a skipped generation", grant(4, span(0, 5), 6, ann),
			`apply change "lsn 4: 0000000000000000-0000000000000005@6 goes to ann/a1000000": generation 6 is not newer than 7`,
		},
		{
			"grant of a held range", grant(4, span(10, 20), 8, bob),
			`apply change "lsn 4: 000000000000000a-0000000000000014@8 goes to bob/b2000000": 000000000000000a-0000000000000014 is held by ann/a1000000 at generation 5`,
		},
		{
			"grant of a range that is held at its end", grant(4, span(0, 11), 8, bob),
			`apply change "lsn 4: 0000000000000000-000000000000000b@8 goes to bob/b2000000": 000000000000000a-000000000000000b is held by ann/a1000000 at generation 5`,
		},
		{
			"grant of a range to its holder", grant(4, span(19, 0), 8, ann),
			`apply change "lsn 4: 0000000000000013-end@8 goes to ann/a1000000": 0000000000000013-0000000000000014 is held by ann/a1000000 at generation 5`,
		},
		{
			"vacate a vacant range", vacate(4, span(20, 30), 7, bob),
			`apply change "lsn 4: 0000000000000014-000000000000001e@7 leaves bob/b2000000 (expired)": 0000000000000014-000000000000001e is at generation 0`,
		},
		{
			"vacate another generation", vacate(4, span(10, 20), 6, ann),
			`apply change "lsn 4: 000000000000000a-0000000000000014@6 leaves ann/a1000000 (expired)": 000000000000000a-0000000000000014 is at generation 5`,
		},
		{
			"vacate more than the lease", vacate(4, span(10, 21), 5, ann),
			`apply change "lsn 4: 000000000000000a-0000000000000015@5 leaves ann/a1000000 (expired)": 000000000000000a-0000000000000014 is at generation 5`,
		},
		{
			"vacate from before the lease", vacate(4, span(9, 20), 5, ann),
			`apply change "lsn 4: 0000000000000009-0000000000000014@5 leaves ann/a1000000 (expired)": 0000000000000000-000000000000000a is at generation 0`,
		},
		{
			"vacate up to the end", vacate(4, span(10, 0), 5, ann),
			`apply change "lsn 4: 000000000000000a-end@5 leaves ann/a1000000 (expired)": 000000000000000a-0000000000000014 is at generation 5`,
		},
		{
			"move from another holder", move(4, span(10, 20), 8, bob, ann),
			`apply change "lsn 4: 000000000000000a-0000000000000014@8 moves from bob/b2000000 to ann/a1000000": 000000000000000a-0000000000000014 is held by ann/a1000000 at generation 5`,
		},
		{
			"move a vacant range", move(4, span(10, 21), 8, ann, bob),
			`apply change "lsn 4: 000000000000000a-0000000000000015@8 moves from ann/a1000000 to bob/b2000000": 0000000000000014-0000000000000015 is held by <nil> at generation 0`,
		},
		{
			"move under the same generation", move(4, span(10, 20), 5, ann, bob),
			`apply change "lsn 4: 000000000000000a-0000000000000014@5 moves from ann/a1000000 to bob/b2000000": generation 5 is not newer than 7`,
		},
		{
			"move without a source", move(4, span(0, 5), 8, nil, bob),
			`apply change "lsn 4: 0000000000000000-0000000000000005@8 moves from <nil> to bob/b2000000": a move needs a source, and only a move has one`,
		},
		{
			"grant with a source",
			table.Change{LSN: 4, Kind: table.Granted, Range: span(0, 5), Generation: 8, Holder: bob, From: ann},
			`apply change "lsn 4: 0000000000000000-0000000000000005@8 goes to bob/b2000000": a move needs a source, and only a move has one`,
		},
		{
			"unknown kind",
			table.Change{LSN: 4, Kind: 9, Range: span(0, 5), Generation: 8, Holder: ann},
			`apply change "lsn 4: 0000000000000000-0000000000000005@8 goes to ann/a1000000": unknown kind 9`,
		},
		{
			"zero change",
			table.Change{LSN: 4},
			`apply change "lsn 4: 0000000000000000-end@0 goes to <nil>": change is incomplete`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			tab := held(t)
			err := tab.Apply(&c.change)
			if err == nil {
				t.Fatal("the change is applied")
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if !errors.Is(err, leasehold.ErrInternal) {
				t.Errorf("the error's kind is %v, want %v", leasehold.KindOf(err), leasehold.ErrInternal)
			}
			checkRows(t, tab, rows(held(t))...)
			if tab.LSN() != 3 || tab.Newest() != 7 {
				t.Errorf("the table went to lsn %d, newest generation %d", tab.LSN(), tab.Newest())
			}
		})
	}
}

func TestApplySplitsAndMerges(t *testing.T) {
	for _, c := range []struct {
		name    string
		changes []table.Change
		want    []row
	}{
		{
			"vacating a part keeps the generation of the rest",
			[]table.Change{grant(1, leasehold.All, 1, ann), vacate(2, span(10, 20), 1, ann)},
			[]row{{span(0, 10), 1, "ann", 0}, {Range: span(10, 20), Lost: 2}, {span(20, 0), 1, "ann", 0}},
		},
		{
			"a new grant to the same owner is a separate lease",
			[]table.Change{grant(1, leasehold.All, 1, ann), vacate(2, span(10, 0), 1, ann), grant(3, span(10, 0), 2, ann)},
			[]row{{span(0, 10), 1, "ann", 0}, {span(10, 0), 2, "ann", 2}},
		},
		{
			"a grant of several vacant ranges is one lease",
			[]table.Change{
				grant(1, span(0, 10), 1, ann), grant(2, span(10, 20), 2, bob),
				vacate(3, span(0, 10), 1, ann), vacate(4, span(10, 20), 2, bob), grant(5, span(5, 30), 3, bob),
			},
			[]row{{Range: span(0, 5), Lost: 3}, {span(5, 30), 3, "bob", 4}, {Range: span(30, 0)}},
		},
		{
			"a grant within a vacant range keeps the rest",
			[]table.Change{grant(1, leasehold.All, 1, ann), vacate(2, leasehold.All, 1, ann), grant(3, span(10, 20), 2, bob)},
			[]row{{Range: span(0, 10), Lost: 2}, {span(10, 20), 2, "bob", 2}, {Range: span(20, 0), Lost: 2}},
		},
		{
			"ranges lost at different times are not merged",
			[]table.Change{grant(1, leasehold.All, 1, ann), vacate(2, span(0, 10), 1, ann), vacate(3, span(10, 0), 1, ann)},
			[]row{{Range: span(0, 10), Lost: 2}, {Range: span(10, 0), Lost: 3}},
		},
		{
			"a move of a part keeps the rest",
			[]table.Change{grant(1, leasehold.All, 1, ann), move(2, span(10, 20), 2, ann, bob)},
			[]row{{span(0, 10), 1, "ann", 0}, {span(10, 20), 2, "bob", 0}, {span(20, 0), 1, "ann", 0}},
		},
		{
			"a move merges leases and takes the maximum of Lost",
			[]table.Change{
				grant(1, span(0, 10), 1, ann), grant(2, span(10, 20), 2, ann), vacate(3, span(0, 5), 1, ann),
				grant(4, span(0, 5), 3, ann), move(5, span(0, 20), 4, ann, bob),
			},
			[]row{{span(0, 20), 4, "bob", 3}, {Range: span(20, 0)}},
		},
		{
			"a move to the same holder merges leases",
			[]table.Change{grant(1, span(0, 10), 1, ann), grant(2, span(10, 0), 2, ann), move(3, leasehold.All, 3, ann, ann)},
			[]row{{leasehold.All, 3, "ann", 0}},
		},
		{
			"both ends of the key space",
			[]table.Change{grant(1, span(math.MaxUint64, 0), 1, ann), grant(2, span(0, 1), 2, ann)},
			[]row{{span(0, 1), 2, "ann", 0}, {Range: span(1, math.MaxUint64)}, {span(math.MaxUint64, 0), 1, "ann", 0}},
		},
	} {
		t.Run(c.name, func(t *testing.T) { checkRows(t, apply(t, table.New(), c.changes...), c.want...) })
	}
}

// A grant of a never held range together with one that lost its state counts as a loss in all of
// it: Lost may cover too much, never too little.
func TestLostOfAGrantIsTheMaximum(t *testing.T) {
	tab := apply(t, table.New(),
		grant(1, span(0, 10), 1, ann), vacate(2, span(0, 10), 1, ann),
		grant(3, span(20, 30), 2, ann), vacate(4, span(20, 30), 2, ann),
		grant(5, span(0, 40), 3, bob))
	checkRows(t, tab, row{span(0, 40), 3, "bob", 4}, row{Range: span(40, 0)})
}

func TestGenerationsMaySkip(t *testing.T) {
	tab := apply(t, table.New(), grant(1, span(0, 10), 1000, ann), grant(2, span(10, 20), 1001, ann))
	if tab.Newest() != 1001 {
		t.Errorf("the newest generation is %d, want 1001", tab.Newest())
	}
	apply(t, tab, vacate(3, span(10, 20), 1001, ann))
	if tab.Newest() != 1001 {
		t.Errorf("after vacating, the newest generation is %d, want 1001", tab.Newest())
	}
}

func TestChangeLoss(t *testing.T) {
	v, g := vacate(4, span(1, 2), 3, ann), grant(4, span(1, 2), 3, ann)
	loss, ok := v.Loss()
	want := leasehold.Loss{Range: span(1, 2), Owner: "ann", Generation: 3, Cause: leasehold.CauseExpired, LSN: 4}
	if diff := cmp.Diff(want, loss); !ok || diff != "" {
		t.Errorf("vacated: %t (-want +got):\n%s", ok, diff)
	}
	if loss, ok := g.Loss(); ok {
		t.Errorf("a grant records the loss %v", loss)
	}
	m := move(4, span(1, 2), 3, ann, bob)
	if loss, ok := m.Loss(); ok {
		t.Errorf("a move records the loss %v", loss)
	}
}

func TestClone(t *testing.T) {
	original := held(t)
	clone := original.Clone()
	if diff := cmp.Diff(rows(original), rows(clone)); diff != "" || clone.LSN() != original.LSN() || clone.Newest() != original.Newest() {
		t.Fatalf("clone at lsn %d, newest %d (-original +clone):\n%s", clone.LSN(), clone.Newest(), diff)
	}
	apply(t, clone, vacate(4, span(12, 15), 5, ann), grant(5, span(12, 15), 8, bob))
	checkRows(t, original, rows(held(t))...)
	apply(t, original, grant(4, span(0, 10), 9, bob))
	checkRows(t, clone,
		row{Range: span(0, 10)}, row{span(10, 12), 5, "ann", 0}, row{span(12, 15), 8, "bob", 4}, row{span(15, 20), 5, "ann", 0},
		row{Range: span(20, 30), Lost: 3}, row{Range: span(30, 0)})
	if original.LSN() != 4 || original.Newest() != 9 || clone.LSN() != 5 || clone.Newest() != 8 {
		t.Errorf("original at %d and %d, clone at %d and %d", original.LSN(), original.Newest(), clone.LSN(), clone.Newest())
	}
}

func TestAtAndWithin(t *testing.T) {
	tab := held(t)
	if r, e := tab.At(15); r != span(10, 20) || e.Holder != ann {
		t.Errorf("at 15: %v, %+v", r, e)
	}
	var parts []leasehold.Range
	for r := range tab.Within(span(15, 25)) {
		parts = append(parts, r)
	}
	if diff := cmp.Diff([]leasehold.Range{span(15, 20), span(20, 25)}, parts); diff != "" {
		t.Errorf("within 15 to 25 (-want +got):\n%s", diff)
	}
}

func entries(es ...table.Entry) *keyrange.Map[table.Entry] {
	var b keyrange.Builder[table.Entry]
	for i, e := range es {
		b.Append(leasehold.Key(i)*10, e)
	}
	return b.Map()
}

func TestRestore(t *testing.T) {
	original := held(t)
	restored, err := table.Restore(original.LSN(), original.Newest(), original.Entries().Clone())
	if err != nil {
		t.Fatal(err)
	}
	checkRows(t, restored, rows(original)...)
	if restored.LSN() != 3 || restored.Newest() != 7 {
		t.Errorf("restored at lsn %d, newest generation %d", restored.LSN(), restored.Newest())
	}
	apply(t, restored, grant(4, span(0, 10), 8, bob))
}

func TestRestoreRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		entry table.Entry
		want  string
	}{
		{
			"a holder without a generation",
			table.Entry{Holder: ann},
			`restore table "000000000000000a-end": generation 0 (newest 5), holder ann/a1000000, lost at lsn 0 (table at 3) do not fit together`,
		},
		{
			"a generation without a holder",
			table.Entry{Generation: 2},
			`restore table "000000000000000a-end": generation 2 (newest 5), holder <nil>, lost at lsn 0 (table at 3) do not fit together`,
		},
		{
			"a generation above the newest",
			table.Entry{Generation: 6, Holder: ann},
			`restore table "000000000000000a-end": generation 6 (newest 5), holder ann/a1000000, lost at lsn 0 (table at 3) do not fit together`,
		},
		{
			"a loss after the table's LSN",
			table.Entry{Lost: 4},
			`restore table "000000000000000a-end": generation 0 (newest 5), holder <nil>, lost at lsn 4 (table at 3) do not fit together`,
		},
		{
			"adopted under a generation above its own",
			table.Entry{Generation: 2, Holder: ann, Adopted: 3},
			`restore table "000000000000000a-end": generation 2 (newest 5), holder ann/a1000000, lost at lsn 0 (table at 3) do not fit together`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := table.Restore(3, 5, entries(table.Entry{Generation: 5, Holder: bob, Lost: 3}, c.entry))
			if err == nil {
				t.Fatal("the table is restored")
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if !errors.Is(err, leasehold.ErrInvalid) {
				t.Errorf("the error's kind is %v, want %v", leasehold.KindOf(err), leasehold.ErrInvalid)
			}
		})
	}
}

// Holders are compared by session: tables from a store or the wire have separate Holder values.
func TestMoveComparesSessions(t *testing.T) {
	same, restarted := *ann, *ann
	restarted.Session = leasehold.Session{0xa2}
	tab := held(t)
	c := move(4, span(10, 20), 8, &restarted, bob)
	if err := tab.Apply(&c); err == nil {
		t.Error("a range moves from another session with the same owner name")
	}
	apply(t, tab, move(4, span(10, 20), 8, &same, bob))
}

// A leader without a store adopts the leases that owners hold. There, a generation is the LSN of
// its grant and proves from which LSN on nothing was lost. Generations of groups with a store prove
// nothing.
func TestAdoptedProvesSinceWhen(t *testing.T) {
	const term = table.ByTerm
	left, right := leasehold.Range{Limit: 1 << 63}, leasehold.Range{Start: 1 << 63}
	adopted := func(lsn leasehold.LSN, parts ...table.Entry) *table.Table {
		m := keyrange.NewMap(table.Entry{Lost: lsn})
		for i, r := range []leasehold.Range{left, right} {
			parts[i].Lost = lsn
			m.Set(r, parts[i])
		}
		tab, err := table.Restore(lsn, leasehold.Generation(lsn), m)
		if err != nil {
			t.Fatal(err)
		}
		return tab
	}
	at := func(g leasehold.Generation) table.Entry { return table.Entry{Generation: g, Holder: ann, Adopted: g} }
	unproven := table.Entry{Generation: term + 3, Holder: ann}
	joint := func(tab *table.Table) *table.Table {
		lsn := tab.LSN() + 1
		apply(t, tab, move(lsn, leasehold.All, leasehold.Generation(lsn), ann, ann))
		return tab
	}
	lossOf := func(tab *table.Table) *table.Table {
		_, e := tab.At(0)
		apply(t, tab, vacate(tab.LSN()+1, left, e.Generation, ann))
		return tab
	}
	for _, test := range []struct {
		name string
		tab  *table.Table
		lsn  leasehold.LSN
		lost [2]bool // left and right
	}{
		{"held without interruption", adopted(2*term, at(term+3), at(term+5)), term + 5, [2]bool{}},
		{"granted later", adopted(2*term, at(term+3), at(term+5)), term + 4, [2]bool{false, true}},
		{"the first of all terms", adopted(2*term, at(term), at(term+5)), term, [2]bool{false, true}},
		{"not proven", adopted(2*term, unproven, at(term+5)), term + 5, [2]bool{true, false}},
		{"held without interruption, and merged", joint(adopted(2*term, at(term+3), at(term+5))), term + 5, [2]bool{}},
		{"granted later, and merged", joint(adopted(2*term, at(term+3), at(term+5))), term + 4, [2]bool{true, true}},
		{"not proven, and merged", joint(adopted(2*term, at(term+5), unproven)), term + 5, [2]bool{true, true}},
		{"lost since", lossOf(adopted(2*term, at(term+3), at(term+5))), term + 5, [2]bool{true, false}},
		{"lost before", lossOf(adopted(2*term, at(term+3), at(term+5))), 2*term + 1, [2]bool{}},
		{"with a store", adopted(1000, at(3), at(5)), 500, [2]bool{true, true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for i, r := range []leasehold.Range{left, right} {
				if _, e := test.tab.At(r.Start); test.tab.LostSince(e, test.lsn) != test.lost[i] {
					t.Errorf("%v is %+v: lost since %d: %t, want %t", r, e, test.lsn, !test.lost[i], test.lost[i])
				}
			}
		})
	}
}
