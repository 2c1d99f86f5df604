package table_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"pgregory.net/rapid"
)

// The model is too simple to be wrong: one entry for each of a few cells, which together are the
// key space.
const cells = 12

type model [cells]table.Entry

// cellRange returns the keys of the cells from i up to j.
func cellRange(i, j int) leasehold.Range {
	const width = 1 << 60
	r := leasehold.Range{Start: leasehold.Key(i) * width}
	if j < cells {
		r.Limit = leasehold.Key(j) * width
	}
	return r
}

// apply applies a change to the model, and reports whether it fits.
func (m *model) apply(c *table.Change, i, j int, newest leasehold.Generation) bool {
	next := table.Entry{}
	for _, e := range m[i:j] {
		switch c.Kind {
		case table.Granted:
			if e.Holder != nil || c.Generation <= newest {
				return false
			}
			next = table.Entry{Generation: c.Generation, Holder: c.Holder, Lost: max(next.Lost, e.Lost)}
		case table.Moved:
			if e.Holder != c.From || c.Generation <= newest {
				return false
			}
			next = table.Entry{Generation: c.Generation, Holder: c.Holder, Lost: max(next.Lost, e.Lost)}
		case table.Vacated:
			if e.Generation != c.Generation {
				return false
			}
			next = table.Entry{Lost: c.LSN}
		}
	}
	for k := i; k < j; k++ {
		m[k] = next
	}
	return true
}

// rows returns the cells; equal neighbours are merged.
func (m *model) rows() []row {
	var out []row
	from := 0
	for i := range cells {
		if i+1 < cells && m[i+1] == m[i] {
			continue
		}
		line := row{Range: cellRange(from, i+1), Gen: m[i].Generation, Lost: m[i].Lost}
		if m[i].Holder != nil {
			line.Owner = m[i].Holder.Owner
		}
		out = append(out, line)
		from = i + 1
	}
	return out
}

// TestTableAgainstModel applies changes, many of them invalid, to a table and to the model, and
// compares them after each.
func TestTableAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tab, m := table.New(), &model{}
		var newest leasehold.Generation
		for range rapid.IntRange(1, 40).Draw(t, "changes") {
			i := rapid.IntRange(0, cells-1).Draw(t, "from")
			j := rapid.IntRange(i+1, cells).Draw(t, "to")
			c := table.Change{LSN: tab.LSN() + 1, Kind: table.Granted, Range: cellRange(i, j), Holder: rapid.SampledFrom([]*table.Holder{ann, bob}).Draw(t, "holder")}
			c.Generation = newest + leasehold.Generation(rapid.IntRange(0, 2).Draw(t, "newer"))
			switch rapid.SampledFrom([]table.Kind{table.Granted, table.Vacated, table.Moved}).Draw(t, "kind") {
			case table.Granted:
			case table.Vacated:
				c.Kind, c.Generation = table.Vacated, m[i].Generation
			case table.Moved:
				c.Kind, c.From = table.Moved, rapid.SampledFrom([]*table.Holder{ann, bob, m[i].Holder}).Draw(t, "from")
			}
			complete := c.Generation != 0 && (c.Kind == table.Moved) == (c.From != nil)
			possible := complete && m.apply(&c, i, j, newest)
			if err := tab.Apply(&c); (err == nil) != possible {
				t.Fatalf("%v: %v, want success: %t", c.String(), err, possible)
			}
			if possible && c.Kind != table.Vacated {
				newest = c.Generation
			}
			if diff := cmp.Diff(m.rows(), rows(tab)); diff != "" {
				t.Fatalf("after %v (-model +table):\n%s", c.String(), diff)
			}
			if tab.Newest() != newest {
				t.Fatalf("the newest generation is %d, want %d", tab.Newest(), newest)
			}
		}
		restored, err := table.Restore(tab.LSN(), tab.Newest(), tab.Entries())
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(rows(restored), rows(tab)) {
			t.Errorf("restored as %v, want %v", rows(restored), rows(tab))
		}
	})
}

// TestLostCoversWhatWasMissed: when skipping from one table to a later one, Lost covers all ranges
// vacated in between, and none if none was, with any number of moves.
func TestLostCoversWhatWasMissed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tab, old := table.New(), table.New()
		var lost [cells]bool // after old
		for range rapid.IntRange(1, 40).Draw(t, "changes") {
			i := rapid.IntRange(0, cells-1).Draw(t, "from")
			j := rapid.IntRange(i+1, cells).Draw(t, "to")
			_, e := tab.At(cellRange(i, j).Start)
			c := grant(tab.LSN()+1, cellRange(i, j), tab.Newest()+1, ann)
			if !e.Vacant() {
				c = vacate(tab.LSN()+1, cellRange(i, j), e.Generation, e.Holder)
				if rapid.Bool().Draw(t, "moves") {
					c = move(tab.LSN()+1, cellRange(i, j), tab.Newest()+1, e.Holder, bob)
				}
			}
			if tab.Apply(&c) != nil {
				continue
			}
			if c.Kind == table.Vacated {
				for k := i; k < j; k++ {
					lost[k] = true
				}
			}
			if rapid.IntRange(0, 5).Draw(t, "look") == 0 {
				old, lost = tab.Clone(), [cells]bool{}
			}
		}
		for k := range cells {
			_, e := tab.At(cellRange(k, k+1).Start)
			if found := e.Lost > old.LSN(); lost[k] && !found {
				t.Errorf("cell %d was lost after lsn %d, and Lost is %d", k, old.LSN(), e.Lost)
			} else if found && !slices.Contains(lost[:], true) {
				t.Errorf("nothing was lost after lsn %d, and Lost of cell %d is %d", old.LSN(), k, e.Lost)
			}
		}
	})
}
