package partition_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/partition"
)

// cellsOf splits every range of a into n cells with equal costs per key.
func cellsOf(a partition.Assignment, n int) partition.Loads {
	var l partition.Loads
	for r := range a.All() {
		for _, c := range split(r, n) {
			l.Cells = append(l.Cells, partition.Cell{Range: c, Rate: math.Ldexp(float64(c.Size()), -40)})
		}
	}
	return l
}

func TestBalancedExtremes(t *testing.T) {
	usual := partition.Input{Members: pool(10), Budget: 1}
	usual.Current = assign(t, partition.Balanced{}, usual)
	even := cellsOf(usual.Current, 4)
	one := []partition.Cell{{Range: leasehold.All, Rate: 1000}}
	for _, test := range []struct {
		name  string
		loads partition.Loads
		still bool // no keys should move
	}{
		{"nothing known", partition.Loads{}, true},
		{"no work", partition.Loads{Cells: []partition.Cell{{Range: leasehold.All}}}, true},
		{"next to no work", partition.Loads{Cells: []partition.Cell{{Range: leasehold.All, Rate: math.SmallestNonzeroFloat64}}}, true},
		{"even work", even, true},
		{"one cell", partition.Loads{Cells: one}, true},
		{"hot keys in no cell", partition.Loads{Hot: []partition.HotKey{{Key: 5, Rate: partition.MaxRate}}}, true},
		{"a hot key of no work", partition.Loads{Cells: one, Hot: []partition.HotKey{{Key: 5}}}, true},
		{"a hot key that is more than its cell", partition.Loads{Cells: one, Hot: []partition.HotKey{{Key: 5, Rate: partition.MaxRate}}}, false},
		{"one key does everything", partition.Loads{Cells: []partition.Cell{{leasehold.Range{Limit: 7}, 0}, {leasehold.Range{Start: 7, Limit: 8}, partition.MaxRate}, {leasehold.Range{Start: 8}, 0}}}, false},
		{"a few keys do everything", partition.Loads{Cells: []partition.Cell{{leasehold.Range{Limit: 1000}, partition.MaxRate}, {leasehold.Range{Start: 1000}, 0}}}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := usual
			in.Loads = test.loads
			after := assign(t, partition.Balanced{}, in)
			if test.still && !cmp.Equal(in.Current, after) {
				t.Errorf("%v of the keys move", partition.Moved(in.Current, after))
			}
			if !test.still && cmp.Equal(in.Current, after) {
				t.Error("no keys move")
			}
		})
	}
}

// A thousand keys with all of the load are distributed to ten owners in one
// decision, although all are in one cell of one owner.
func TestBalancedSplitsCell(t *testing.T) {
	in := partition.Input{Members: pool(10), Budget: 0.1}
	in.Current = assign(t, partition.Balanced{}, in)
	in.Loads.Cells = []partition.Cell{
		{Range: leasehold.Range{Limit: 1000}, Rate: 1e6},
		{Range: leasehold.Range{Start: 1000}, Rate: 0},
	}
	a := assign(t, partition.Balanced{}, in)
	if most := highest(in.Members, costs(in.Loads, a)); most > 1.15 {
		t.Errorf("the highest load is %.2f times the mean", most)
	}
	if share := partition.Moved(in.Current, a); share > 0.001 {
		t.Errorf("%v of the keys move for 1000 keys", share)
	}
}

// If the load of a range is in its middle, only the middle moves.
func TestBalancedMovesDensePieces(t *testing.T) {
	in := partition.Input{Members: pool(10), Budget: 1}
	in.Current = assign(t, partition.Balanced{}, in)
	in.Loads = cellsOf(in.Current, 64)
	middle := &in.Loads.Cells[20*64+32]
	middle.Rate *= 1000 // a tenth of all work
	a := assign(t, partition.Balanced{}, in)
	if most := highest(in.Members, costs(in.Loads, a)); most > 1.15 {
		t.Errorf("the highest load is %.2f times the mean", most)
	}
	if share := partition.Moved(in.Current, a); share > 0.0002 {
		t.Errorf("%v of the keys move, and the cell has %v", share, math.Ldexp(float64(middle.Range.Size()), -64))
	}
}

// A hot key with rate 0 whose cell contains only
// this key has the cost of the cell.
func TestBalancedInconsistentLoads(t *testing.T) {
	in := partition.Input{Members: pool(5), Budget: 1}
	in.Current = assign(t, partition.Balanced{}, in)
	in.Loads = partition.Loads{
		Cells: []partition.Cell{
			{Range: leasehold.Range{Start: 1, Limit: 2}, Rate: 1},
			{Range: leasehold.Range{Start: 2, Limit: 4}, Rate: 1},
			{Range: leasehold.Range{Start: 4}, Rate: 0},
		},
		Hot: []partition.HotKey{{Key: 1}, {Key: 2}},
	}
	before, after := costs(in.Loads, in.Current), costs(in.Loads, assign(t, partition.Balanced{}, in))
	if was, is := highest(in.Members, before), highest(in.Members, after); is > was {
		t.Errorf("the highest load changes from %.2f to %.2f times the mean", was, is)
	}
}

// A piece that is cut to fit is not too large by a rounding error.
func TestBalancedRounding(t *testing.T) {
	in := partition.Input{Members: pool(6), Budget: 1, Loads: evenLoads()}
	in.Members[4].Weight, in.Members[5].Weight = 1.8515625, 2.75
	in.Current = partition.Assignment{{0, "server-00000"}, {1, "server-00001"}, {2, "server-00002"}}
	if most := shareOverMean(in.Members, assign(t, partition.Balanced{}, in)); most > 1.15 {
		t.Errorf("the highest load is %.2f times the mean", most)
	}
}

// Loads are proportional to very different weights.
func TestBalancedVeryDifferentWeights(t *testing.T) {
	in := partition.Input{Members: pool(12), Budget: 1}
	in.Current = assign(t, partition.Balanced{}, in)
	in.Loads = cellsOf(in.Current, 16)
	for i := range in.Members {
		in.Members[i].Weight = []float64{0.001, 1, 1000}[i%3]
	}
	a := assign(t, partition.Balanced{}, in)
	if most := highest(in.Members, a.Shares()); most > 1.15+1e-9 {
		t.Errorf("the highest load is %.3f times the mean", most)
	}
}

// Lower limits apply at once, and every member keeps keys.
func TestBalancedKeepsLowerLimits(t *testing.T) {
	in := partition.Input{Members: pool(30)}
	in.Current = assign(t, partition.Balanced{}, in)
	for _, limits := range []partition.Limits{{MaxRanges: 100}, {MaxRanges: 30}, {MaxPerOwner: 5}, {MaxPerOwner: 1}, {MaxRanges: 100, MaxPerOwner: 2}} {
		in.Limits = limits
		if shares := assign(t, partition.Balanced{}, in).Shares(); len(shares) != 30 {
			t.Errorf("with %+v, %d of 30 have keys", limits, len(shares))
		}
	}
}

// At the limit of ranges, balancing does not grow the table, and the budget
// is kept.
func TestBalancedAtLimit(t *testing.T) {
	in := partition.Input{Members: pool(30), Budget: 0.002}
	in.Current = assign(t, partition.Balanced{}, in)
	in.Loads = waves(in.Current, 8)
	for _, limits := range []partition.Limits{{MaxRanges: len(in.Current)}, {MaxPerOwner: 16}} {
		in.Limits = limits
		a := assign(t, partition.Balanced{}, in)
		if share := partition.Moved(in.Current, a); share > in.Budget || share == 0 {
			t.Errorf("with %+v, %v of the keys move", limits, share)
		}
	}
}

// A table that moves have made long is shortened by merging cold ranges.
func TestBalancedMergesSlivers(t *testing.T) {
	in := partition.Input{Members: pool(4), Budget: 1}
	for i := range 4 * 16 * 4 { // four times as many as initially, every second one a sliver
		at := leasehold.Key(i/2) << 57
		if i%2 == 1 {
			at += 1<<57 - 1<<40
		}
		in.Current = in.Current.Append(at, in.Members[(i+i/8)%4].Owner)
	}
	in.Loads = cellsOf(in.Current, 1)
	a := assign(t, partition.Balanced{}, in)
	if len(in.Current) < 200 || len(a) > 130 {
		t.Errorf("%d ranges become %d, want about 128", len(in.Current), len(a))
	}
	if share := partition.Moved(in.Current, a); share > 0.001 {
		t.Errorf("%v of the keys move to merge slivers", share)
	}
	in.Budget = 0
	if diff := cmp.Diff(in.Current, assign(t, partition.Balanced{}, in)); diff != "" {
		t.Error("without a budget, ranges are merged")
	}
}

// Ten thousand owners, with loads that differ by half of the mean.
func TestBalancedManyOwners(t *testing.T) {
	in := partition.Input{Members: pool(10_000), Budget: 1}
	in.Current = assign(t, partition.Balanced{}, in)
	in.Loads = waves(in.Current, 4)
	before := highest(in.Members, loadsOf(in.Loads, in.Current))
	in.Current = assign(t, partition.Balanced{}, in)
	after := highest(in.Members, loadsOf(in.Loads, in.Current))
	if before < 1.3 || after > 1.16 {
		t.Errorf("the highest load changes from %.2f to %.2f times the mean", before, after)
	}
}

// waves returns loads that rise and fall over the key space, with n cells for each
// range of a.
func waves(a partition.Assignment, n int) partition.Loads {
	l := cellsOf(a, n)
	for i := range l.Cells {
		l.Cells[i].Rate *= 1 + 0.9*math.Sin(float64(i)/10)
	}
	return l
}

// loadsOf returns the load of each owner, if every cell is within a range.
func loadsOf(l partition.Loads, a partition.Assignment) map[leasehold.OwnerID]float64 {
	loads := map[leasehold.OwnerID]float64{}
	for _, c := range l.Cells {
		loads[a.OwnerAt(c.Range.Start)] += c.Rate
	}
	return loads
}
