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

// minAge is the minimum age of a range in reports.
const minAge = time.Second

// A hot key has at least this share of the work and this number of samples, for significance.
const (
	hotShare   = 0.01
	hotSamples = 32
)

// loads returns the current loads. It merges adjacent cells of a lease without work.
func (l *ledger) loads() *partition.Loads {
	out := &partition.Loads{}
	enough := -math.Expm1(-minAge.Seconds()/memory.Seconds()) * (1 - 1e-9)
	for i := range l.layout {
		p := &l.layout[i]
		quiet := false // the previous cell is of this lease and has no work
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

// rateOf returns the work per second since the grant, at most MaxRate.
func rateOf(work, known float64) float64 { return min(work/known, partition.MaxRate) }

// busiest returns the cells with the highest rates, as many as a message may have.
func busiest(cells []partition.Cell) []partition.Cell {
	if len(cells) <= protocol.MaxCells {
		return cells
	}
	slices.SortFunc(cells, func(a, b partition.Cell) int { return cmp.Compare(b.Rate, a.Rate) })
	cells = cells[:protocol.MaxCells]
	slices.SortFunc(cells, func(a, b partition.Cell) int { return cmp.Compare(a.Range.Start, b.Range.Start) })
	return cells
}

// hot returns the keys that certainly exceed the limits of a hot key.
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
		// Only reported cells have hot keys.
		i, reported := slices.BinarySearchFunc(cells, c.Key, func(cell partition.Cell, key leasehold.Key) int {
			if cell.Range.Contains(key) {
				return 0
			}
			return cmp.Compare(cell.Range.Start, key)
		})
		number, held := l.layout.find(c.Key)
		if reported && held {
			out = append(out, partition.HotKey{Key: c.Key, Rate: min(rateOf(c.Least(), l.accounts[number].known), cells[i].Rate)})
		}
	}
	slices.SortFunc(out, func(a, b partition.HotKey) int { return cmp.Compare(b.Rate, a.Rate) })
	out = out[:min(len(out), protocol.MaxHotKeys)]
	slices.SortFunc(out, func(a, b partition.HotKey) int { return cmp.Compare(a.Key, b.Key) })
	return out
}
