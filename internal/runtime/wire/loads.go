package wire

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/partition"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// FromLoads writes what keys cost, nil as nil.
func FromLoads(l *partition.Loads) *leaseholdv1.Loads {
	if l == nil {
		return nil
	}
	cells, hot := len(l.Cells), len(l.Hot)
	out := &leaseholdv1.Loads{
		Starts:   make([]uint64, cells),
		Limits:   make([]uint64, cells),
		Rates:    make([]float64, cells),
		HotKeys:  make([]uint64, hot),
		HotRates: make([]float64, hot),
	}
	for i, c := range l.Cells {
		out.Starts[i], out.Limits[i], out.Rates[i] = uint64(c.Range.Start), uint64(c.Range.Limit), c.Rate
	}
	for i, h := range l.Hot {
		out.HotKeys[i], out.HotRates[i] = uint64(h.Key), h.Rate
	}
	return out
}

// ToLoads reads what keys cost, nil as nil. What the numbers say is for the
// protocol to check.
func ToLoads(l *leaseholdv1.Loads) (*partition.Loads, error) {
	const op = "read loads"
	if l == nil {
		return nil, nil
	}
	cells, hot := len(l.GetStarts()), len(l.GetHotKeys())
	switch {
	case cells > protocol.MaxCells || hot > protocol.MaxHotKeys:
		return nil, leasehold.Errorf(op, leasehold.ErrLimit, "", "%d cells and %d hot keys, at most %d and %d are allowed",
			cells, hot, protocol.MaxCells, protocol.MaxHotKeys)
	case len(l.GetLimits()) != cells || len(l.GetRates()) != cells:
		return nil, leasehold.Errorf(op, leasehold.ErrInvalid, "", "columns of %d starts, %d limits and %d rates: want as many of each",
			cells, len(l.GetLimits()), len(l.GetRates()))
	case len(l.GetHotRates()) != hot:
		return nil, leasehold.Errorf(op, leasehold.ErrInvalid, "", "columns of %d hot keys and %d rates: want as many of each", hot, len(l.GetHotRates()))
	}
	out := &partition.Loads{Cells: make([]partition.Cell, cells), Hot: make([]partition.HotKey, hot)}
	for i := range out.Cells {
		out.Cells[i] = partition.Cell{Range: toRange(l.GetStarts()[i], l.GetLimits()[i]), Rate: l.GetRates()[i]}
	}
	for i := range out.Hot {
		out.Hot[i] = partition.HotKey{Key: leasehold.Key(l.GetHotKeys()[i]), Rate: l.GetHotRates()[i]}
	}
	return out, nil
}

// toRange reads a range as it is.
func toRange(start, limit uint64) leasehold.Range {
	return leasehold.Range{Start: leasehold.Key(start), Limit: leasehold.Key(limit)}
}
