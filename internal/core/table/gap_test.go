package table_test

import (
	"slices"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// The entries are the same after a gap. A lookup from before the gap missed only losses that the
// table records; one from inside it relies on generations. New changes continue above the gap.
func TestGap(t *testing.T) {
	tab := table.New()
	half, rest := leasehold.Range{Limit: 1 << 63}, leasehold.Range{Start: 1 << 63}
	apply(t, tab, grant(1, half, 1, ann))
	apply(t, tab, grant(2, rest, 2, bob))
	apply(t, tab, vacate(3, rest, 2, bob))
	apply(t, tab, grant(4, rest, 3, bob))
	before := rows(tab)
	got := tab.Rebased(1000, false, func(_ leasehold.Range, e table.Entry) bool { return e.Holder == ann })
	if want := (table.Gap{After: 4, Base: 1000, Newest: 3}); got.LSN() != 1000 || got.Newest() != 1000 || got.Gap() != want || !slices.Equal(rows(tab), before) {
		t.Errorf("lsn %d, newest %d, gap %+v; the table itself is now %v", got.LSN(), got.Newest(), got.Gap(), rows(tab))
	}
	twice := got.Clone()
	apply(t, twice, vacate(1001, half, 1, ann))
	twice = twice.Rebased(2000, false, func(leasehold.Range, table.Entry) bool { return false })
	at := func(tab *table.Table, k leasehold.Key) table.Entry { _, e := tab.At(k); return e }
	for _, test := range []struct {
		name   string
		tab    *table.Table
		lsn    leasehold.LSN
		left   leasehold.Generation // in the lookup's table
		right  leasehold.Generation
		missed [2]bool
		since  [2]bool // for a caller with only the LSN
	}{
		{"before the gap", got, 4, 1, 3, [2]bool{}, [2]bool{}},
		{"before a loss before the gap", got, 2, 1, 2, [2]bool{false, true}, [2]bool{false, true}},
		{"inside the gap, same leases", got, 6, 1, 3, [2]bool{false, true}, [2]bool{true, true}},
		{"inside the gap, vacant then", got, 6, 0, 0, [2]bool{true, true}, [2]bool{true, true}},
		{"inside the gap, another lease", got, 6, 5, 3, [2]bool{true, true}, [2]bool{true, true}},
		{"after the gap", got, 1000, 1, 3, [2]bool{}, [2]bool{}},
		{"between two gaps", twice, 1000, 1, 3, [2]bool{true, false}, [2]bool{true, false}},
		{"before two gaps", twice, 4, 1, 3, [2]bool{true, false}, [2]bool{true, false}},
		{"inside the first of two", twice, 6, 1, 3, [2]bool{true, true}, [2]bool{true, true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for i, k := range []leasehold.Key{0, 1 << 63} {
				knew := table.Entry{Generation: []leasehold.Generation{test.left, test.right}[i], Holder: ann}
				if got := test.tab.Missed(at(test.tab, k), knew, test.lsn); got != test.missed[i] {
					t.Errorf("at %v: Missed = %t, want %t", k, got, test.missed[i])
				}
				if got := test.tab.LostSince(at(test.tab, k), test.lsn); got != test.since[i] {
					t.Errorf("at %v: LostSince = %t, want %t", k, got, test.since[i])
				}
			}
		})
	}
	for _, test := range []struct {
		change table.Change
		fits   bool
	}{
		{vacate(5, half, 1, ann), false},
		{vacate(1001, half, 1, ann), true},
		{grant(1002, half, 4, bob), false},
		{grant(1002, half, 1001, bob), true},
	} {
		if err := got.Apply(&test.change); (err == nil) != test.fits {
			t.Errorf("%v: %v", test.change.String(), err)
		}
	}
	for _, g := range []leasehold.Generation{3, 4, 999, 1000} {
		if lost := got.LostGeneration(g); lost != (g > 3 && g < 1000) {
			t.Errorf("generation %d was lost: %t", g, lost)
		}
	}
}

// A gap can be widened as long as it is unknown what the store has lost: lookups from before both
// have missed nothing. Without widening there is a second gap.
func TestGapTwice(t *testing.T) {
	tab := table.New()
	apply(t, tab, grant(1, leasehold.All, 1, ann))
	none := func(leasehold.Range, table.Entry) bool { return false }
	got := tab.Rebased(1000, false, none).Rebased(2000, true, none)
	if want := (table.Gap{After: 1, Base: 2000, Newest: 1}); got.Gap() != want {
		t.Errorf("the gap is %+v, want %+v", got.Gap(), want)
	}
	if n := len(got.Gaps()); n != 1 {
		t.Errorf("it has %d gaps, want the widened one only", n)
	}
	if got := table.New().Rebased(1000, true, none); got.Gap() != (table.Gap{Base: 1000}) {
		t.Errorf("without a gap to widen there is %+v", got.Gap())
	}
	changed := tab.Rebased(1000, false, none)
	apply(t, changed, vacate(1001, leasehold.All, 1, ann))
	if got := changed.Rebased(2000, true, none); len(got.Gaps()) != 2 || got.Gap() != (table.Gap{From: 1000, After: 1001, Base: 2000, Newest: 1000}) {
		t.Errorf("after a change the gaps are %+v: a gap with changes since must not be widened", got.Gaps())
	}
	got = tab.Rebased(1000, false, none).Rebased(2000, false, none)
	if want := (table.Gap{From: 1000, After: 1000, Base: 2000, Newest: 1000}); got.Gap() != want {
		t.Errorf("the gap is %+v, want %+v: a lookup with the table from between the gaps has missed nothing", got.Gap(), want)
	}
}

// A table keeps its newest gaps. A lookup from before the oldest of these is treated as one of a
// lost history.
func TestManyGaps(t *testing.T) {
	tab := table.New()
	apply(t, tab, grant(1, leasehold.All, 1, ann))
	all := func(leasehold.Range, table.Entry) bool { return true }
	const gaps = 100
	for i := range uint64(gaps) {
		tab = tab.Rebased(1000*(i+1), false, all)
	}
	if n := len(tab.Gaps()); n != 64 {
		t.Errorf("it keeps %d gaps, want 64", n)
	}
	_, e := tab.At(0)
	for lsn, lost := range map[leasehold.LSN]bool{1: true, 1000*(gaps-64) - 1: true, 1000 * (gaps - 64): false, 1000 * (gaps - 1): false, 1000*(gaps-1) + 1: true, 1000 * gaps: false} {
		if got := tab.LostSince(e, lsn); got != lost {
			t.Errorf("LostSince(lsn %d) = %t, want %t", lsn, got, lost)
		}
	}
}

// A gap that does not fit the table is rejected. Each of these is wrong in one way only.
func TestWithGap(t *testing.T) {
	tab, err := table.Restore(70, 5, keyrange.NewMap(table.Entry{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, gaps := range [][]table.Gap{
		{{After: 2, Base: 1}}, {{After: 2, Base: 2}}, {{}}, {{From: 3, After: 2, Base: 5}}, {{Base: 71}}, {{Base: 1, Newest: 6}},
		{{Base: 3}, {From: 2, After: 4, Base: 5}},
	} {
		if _, err := tab.WithGaps(gaps); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("%+v is accepted: %v", gaps, err)
		}
	}
	var many []table.Gap
	for i := range leasehold.LSN(65) {
		many = append(many, table.Gap{From: i, After: i, Base: i + 1})
	}
	if _, err := tab.WithGaps(many); leasehold.KindOf(err) != leasehold.ErrLimit {
		t.Errorf("65 gaps are accepted: %v", err)
	}
	for _, gaps := range [][]table.Gap{many[:64], {{Base: 70, Newest: 5}}, {{Base: 3}, {From: 3, After: 3, Base: 4}}} {
		if got, err := tab.WithGaps(gaps); err != nil || !slices.Equal(got.Gaps(), gaps) {
			t.Errorf("%+v is rejected: %v", gaps, err)
		}
	}
}

// TestCrossing: a crossing turns the table before a gap into the one after it, and fails for other
// tables.
func TestCrossing(t *testing.T) {
	quarter, second, rest := leasehold.Range{Limit: 1 << 62}, leasehold.Range{Start: 1 << 62, Limit: 1 << 63}, leasehold.Range{Start: 1 << 63}
	tab := table.New()
	apply(t, tab, grant(1, quarter, 1, ann))
	apply(t, tab, grant(2, second, 2, bob))
	apply(t, tab, grant(3, rest, 3, ann))
	apply(t, tab, vacate(4, rest, 3, ann))
	adopt := func(held ...*table.Holder) *table.Table {
		return tab.Rebased(1000, false, func(_ leasehold.Range, e table.Entry) bool { return slices.Contains(held, e.Holder) })
	}
	for _, held := range [][]*table.Holder{{ann, bob}, {bob}, {}} {
		want := adopt(held...)
		c := tab.Crossing(want)
		if len(c.Silent) != 2-len(held) || len(c.Unproven) != 0 {
			t.Errorf("with %d owners adopted: silent %v, unproven %v", len(held), c.Silent, c.Unproven)
		}
		got, err := tab.Cross(c)
		if err != nil || got.LSN() != want.LSN() || got.Newest() != want.Newest() || got.Gap() != want.Gap() || !slices.Equal(rows(got), rows(want)) {
			t.Errorf("with %d owners adopted: %v, %v; want %v", len(held), got, err, rows(want))
		}
		if _, err := want.Cross(c); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("the table after the gap crosses it: %v", err)
		}
	}
	for _, unproven := range [][]leasehold.Key{{1 << 63}, {5}, {1 << 62, 0}} {
		if _, err := tab.Cross(&table.Crossing{Gap: adopt().Gap(), Unproven: unproven}); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("unproven ranges %v, some of which are vacant, are accepted: %v", unproven, err)
		}
	}
}

// TestCrossingOfEqualNeighbours: adjacent ranges that differ only in Adopted may be merged by a
// gap.
func TestCrossingOfEqualNeighbours(t *testing.T) {
	tab := table.New()
	apply(t, tab, grant(1, leasehold.All, 1, ann))
	half := leasehold.Range{Limit: 1 << 63}
	var b keyrange.Builder[table.Entry]
	_, e := tab.At(0)
	e.Adopted = 1
	b.Append(0, e)
	e.Adopted = 0
	b.Append(half.Limit, e)
	before, err := table.Restore(1, 1, b.Map())
	if err != nil {
		t.Fatal(err)
	}
	for adopted, ranges := range map[leasehold.Key]int{0: 2, half.Limit: 2, 1: 1} { // start of the adopted range; no range starts at 1
		want := before.Rebased(1000, false, func(r leasehold.Range, _ table.Entry) bool { return r.Start == adopted })
		got, err := before.Cross(before.Crossing(want))
		if err != nil || want.Len() != ranges || !slices.Equal(rows(got), rows(want)) {
			t.Errorf("adopted at %v it is %v, %v; want %d ranges, %v", adopted, got, err, ranges, rows(want))
		}
	}
}

// TestCrossingIsExact: after a crossing the same ranges are adopted. A silent session is listed once, whatever it holds.
func TestCrossingIsExact(t *testing.T) {
	tab := table.New()
	for i, h := range []*table.Holder{ann, bob, ann, bob} {
		start := leasehold.Key(i) * 10
		apply(t, tab, grant(leasehold.LSN(i+1), span(start, start+10), leasehold.Generation(i+1), h))
	}
	want := tab.Rebased(1000, false, func(r leasehold.Range, _ table.Entry) bool { return r.Start == 0 })
	c := tab.Crossing(want)
	if !slices.Equal(c.Silent, []leasehold.Session{bob.Session}) || !slices.Equal(c.Unproven, []leasehold.Key{20}) {
		t.Errorf("silent %v, unproven %v; want bob and 20", c.Silent, c.Unproven)
	}
	got, err := tab.Cross(c)
	if err != nil {
		t.Fatal(err)
	}
	for r, e := range want.All() {
		if at, crossed := got.At(r.Start); at != r || crossed != e {
			t.Errorf("%v is %+v, want %+v", at, crossed, e)
		}
	}
	for name, change := range map[string]func(*table.Gap){
		"no gap":             func(g *table.Gap) { g.From = g.After + 1 },
		"another LSN":        func(g *table.Gap) { g.After-- },
		"another generation": func(g *table.Gap) { g.Newest-- },
	} {
		other := *c
		change(&other.Gap)
		if _, err := tab.Cross(&other); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("%s: %+v is crossed: %v", name, other.Gap, err)
		}
	}
	none := func(leasehold.Range, table.Entry) bool { return false }
	twice := want.Rebased(2000, false, none)
	if got, err := want.Cross(want.Crossing(twice)); err != nil || !slices.Equal(got.Gaps(), twice.Gaps()) {
		t.Errorf("after two crossings the gaps are %+v, want %+v: %v", got.Gaps(), twice.Gaps(), err)
	}
	// A table that does not have the gap before gets the numbers of the crossing.
	later := *c
	later.Gap.From = 2
	if got, err := tab.Cross(&later); err != nil || got.Gap() != later.Gap {
		t.Errorf("the gap is %+v, want %+v: %v", got.Gap(), later.Gap, err)
	}
}
