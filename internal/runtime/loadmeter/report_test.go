package loadmeter

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/partition"
	"pgregory.net/rapid"
)

// Reports are valid for all samples and leases.
func TestLoadsAreValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBook(nil)
		t.Repeat(map[string]func(*rapid.T){
			"hold": func(t *rapid.T) { b.hold(drawLeases(t)) },
			"work": func(t *rapid.T) {
				key := leasehold.Key(rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 10)).Draw(t, "key"))
				weight := rapid.Float64Range(5e-324, 1e30).Draw(t, "weight")
				for range rapid.IntRange(1, 50).Draw(t, "times") {
					b.enter(sample{key, weight})
				}
			},
			"pass": func(t *rapid.T) { b.pass(time.Duration(rapid.Int64Range(0, 1e11).Draw(t, "time")), 0) },
			"":     func(t *rapid.T) { wantValid(t, b.loads()) },
		})
	})
}

// A hot key has a percent of the work and enough samples.
func TestHotKeys(t *testing.T) {
	for _, test := range []struct {
		name    string
		perCent float64 // of the work is on one key
		samples int     // in a minute
		want    bool
	}{
		{"a fifth", 20, 60_000, true},
		{"two percent", 2, 60_000, true},
		{"half a percent", 0.5, 60_000, false},
		{"a fifth of little", 20, 300, false},
		{"all of little", 100, 240, true},
		{"a single request", 100, 1, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBook(everything())
			hot, share := leasehold.Key(99), 0.0
			for i := range test.samples {
				key := leasehold.Key(i+1) * 0x9e3779b97f4a7c15
				if share += test.perCent / 100; share >= 1-1e-9 {
					share--
					key = hot
				}
				b.pass(time.Minute/time.Duration(test.samples), 1, key)
			}
			l := b.loads()
			wantValid(t, l)
			if got := len(l.Hot) == 1 && l.Hot[0].Key == hot; got != test.want || !test.want && len(l.Hot) > 0 {
				t.Fatalf("hot keys %v", l.Hot)
			}
			if test.want {
				wantAbout(t, "its rate", l.Hot[0].Rate, float64(test.samples)/60*test.perCent/100, 0.15)
			}
		})
	}
}

// The report has the hottest of too many hot keys.
func TestHotKeysAreLimited(t *testing.T) {
	b := newBook(everything())
	for range 100 {
		b.now = b.now.Add(time.Second)
		b.advance(b.now)
		for key := range leasehold.Key(70) {
			for range 70 + key {
				b.enter(sample{key, 1})
			}
		}
	}
	l := b.loads()
	wantValid(t, l)
	if len(l.Hot) != protocol.MaxHotKeys || l.Hot[0].Key != 70-protocol.MaxHotKeys {
		t.Errorf("%d hot keys from %v on", len(l.Hot), l.Hot[0].Key)
	}
}

// The report has the busiest of too many cells.
func TestCellsAreLimited(t *testing.T) {
	leases := evenly(protocol.MaxCells + 100)
	b := newBook(leases)
	for i, l := range leases {
		b.pass(time.Millisecond, float64(1+i), l.Range.Start)
	}
	l := b.loads()
	wantValid(t, l)
	if len(l.Cells) != protocol.MaxCells || l.Cells[0].Range != leases[100].Range {
		t.Errorf("%d cells from %v on, want %v", len(l.Cells), l.Cells[0].Range, leases[100].Range)
	}
}

// Adjacent cells without work are merged within a lease only.
func TestIdleCellsAreMerged(t *testing.T) {
	b := newBook(evenly(2))
	b.pass(2*time.Second, 10, 1<<60) // the start of a cell
	step := leasehold.Key(1) << 55
	want := []partition.Cell{
		{Range: leasehold.Range{Limit: 1 << 60}},
		{Range: leasehold.Range{Start: 1 << 60, Limit: 1<<60 + step}, Rate: 5},
		{Range: leasehold.Range{Start: 1<<60 + step, Limit: 1 << 63}},
		{Range: leasehold.Range{Start: 1 << 63}},
	}
	got := b.loads().Cells
	if len(got) != len(want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for i := range want {
		if got[i].Range != want[i].Range {
			t.Errorf("cell %d is %v, want %v", i, got[i], want[i])
		}
		wantAbout(t, "its rate", got[i].Rate, want[i].Rate, 1e-9)
	}
}
