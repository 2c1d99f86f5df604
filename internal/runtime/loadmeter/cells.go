package loadmeter

import (
	"math/bits"
	"slices"

	"github.com/leasehold-dev/leasehold"
)

// maxCells is the maximum number of cells of all leases, unless there are more leases. The number of cells
// is more than half of it.
const maxCells = 512

// A plot is the range of a lease, divided into cells of equal size. Both of its ends are inclusive, so the
// end of the key space is no special case.
type plot struct {
	first, last leasehold.Key
	step        uint64 // keys per cell; 0 if there is one cell
	cell        int    // number of the first cell
}

// cells returns the number of cells.
func (p *plot) cells() int {
	if p.step == 0 {
		return 1
	}
	return int(uint64(p.last-p.first)/p.step) + 1
}

// at returns the number of the cell that has the key, which is in the plot.
func (p *plot) at(key leasehold.Key) int {
	if p.step == 0 {
		return p.cell
	}
	return p.cell + int(uint64(key-p.first)/p.step)
}

// ends returns the first and the last key of cell i.
func (p *plot) ends(i int) (first, last leasehold.Key) {
	if p.step == 0 {
		return p.first, p.last
	}
	first = p.first + leasehold.Key(uint64(i)*p.step)
	if uint64(p.last-first) < p.step {
		return first, p.last
	}
	return first, first + leasehold.Key(p.step) - 1
}

// A layout is the plots of all leases held, sorted.
type layout []plot

// cut returns the layout of leases that are sorted and do not overlap. It divides each into the same number
// of cells, a power of two, or into its keys if they are fewer.
func cut(leases []leasehold.Lease) layout {
	if len(leases) == 0 {
		return nil
	}
	parts := uint64(1)
	if each := maxCells / len(leases); each > 1 {
		parts = 1 << (bits.Len(uint(each)) - 1)
	}
	out := make(layout, len(leases))
	next := 0
	for i, l := range leases {
		p := plot{first: l.Range.Start, last: l.Range.Last(), cell: next}
		if parts > 1 {
			p.step = uint64(p.last-p.first)/parts + 1
		}
		out[i] = p
		next += p.cells()
	}
	return out
}

// cells returns the number of cells of all plots.
func (l layout) cells() int {
	if len(l) == 0 {
		return 0
	}
	p := &l[len(l)-1]
	return p.cell + p.cells()
}

// find returns the number of the cell of a key; false if the key is not held.
func (l layout) find(key leasehold.Key) (int, bool) {
	i, _ := slices.BinarySearchFunc(l, key, func(p plot, key leasehold.Key) int {
		if p.last < key {
			return -1
		}
		return 1
	})
	if i == len(l) || key < l[i].first {
		return 0, false
	}
	return l[i].at(key), true
}

// each calls f for every cell in order.
func (l layout) each(f func(cell int, first, last leasehold.Key)) {
	for i := range l {
		for c := range l[i].cells() {
			first, last := l[i].ends(c)
			f(l[i].cell+c, first, last)
		}
	}
}
