package loadmeter

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/partition"
)

// soonest is for how long a range must have been held before anything is said
// about it.
const soonest = time.Second

// What makes a key hot: a share of all the work, and so many samples that it is
// no accident.
const (
	hotShare   = 0.01
	hotSamples = 32
)

// loads returns what is known. Neighbouring cells of a lease on which nothing
// happens are told as one.
func (l *ledger) loads() *partition.Loads {
	out := &partition.Loads{}
	enough := -math.Expm1(-soonest.Seconds()/memory.Seconds()) * (1 - 1e-9)
	for i := range l.layout {
		p := &l.layout[i]
		quiet := false // the cell before is one of this lease, and quiet
		for c := range p.cells() {
			a := l.accounts[p.cell+c]
			if a.known < enough {
				quiet = false
				continue
			}
			first, last := p.ends(c)
			rate := rateOf(a.work, a.known)
			if quiet && rate == 0 {
				out.Cells[len(out.Cells)-1].Range.Limit = last + 1
				continue
			}
			out.Cells = append(out.Cells, partition.Cell{Range: leasehold.Range{Start: first, Limit: last + 1}, Rate: rate})
			quiet = rate == 0
		}
	}
	out.Cells = busiest(out.Cells)
	out.Hot = l.hot(out.Cells)
	return out
}

// rateOf returns work per second since it is known, within what may be told.
func rateOf(work, known float64) float64 { return min(work/known, partition.MaxRate) }

// busiest leaves out the least busy cells if there are too many for a message.
func busiest(cells []partition.Cell) []partition.Cell {
	if len(cells) <= protocol.MaxCells {
		return cells
	}
	slices.SortFunc(cells, func(a, b partition.Cell) int { return cmp.Compare(b.Rate, a.Rate) })
	cells = cells[:protocol.MaxCells]
	slices.SortFunc(cells, func(a, b partition.Cell) int { return cmp.Compare(a.Range.Start, b.Range.Start) })
	return cells
}

// hot returns the keys that certainly have a share of the work that is worth
// mentioning.
func (l *ledger) hot(cells []partition.Cell) []partition.HotKey {
	if l.entries == 0 {
		return nil
	}
	least := max(hotShare*l.weight, hotSamples/memory.Seconds()*l.weight/l.entries)
	var out []partition.HotKey
	for c := range l.keys.All() {
		if c.Least() < least {
			continue
		}
		// A cell that is not told about has no hot keys either.
		i, told := slices.BinarySearchFunc(cells, c.Key, func(cell partition.Cell, key leasehold.Key) int {
			if cell.Range.Contains(key) {
				return 0
			}
			return cmp.Compare(cell.Range.Start, key)
		})
		number, held := l.layout.find(c.Key)
		if told && held {
			out = append(out, partition.HotKey{Key: c.Key, Rate: min(rateOf(c.Least(), l.accounts[number].known), cells[i].Rate)})
		}
	}
	slices.SortFunc(out, func(a, b partition.HotKey) int { return cmp.Compare(b.Rate, a.Rate) })
	out = out[:min(len(out), protocol.MaxHotKeys)]
	slices.SortFunc(out, func(a, b partition.HotKey) int { return cmp.Compare(a.Key, b.Key) })
	return out
}
