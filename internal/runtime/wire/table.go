package wire

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const opTable = "read table"

// maxGeneration keeps generations within signed 64-bit integers.
const maxGeneration = 1<<63 - 1

// FromTable encodes a table for the store, in linear time. t must not be modified meanwhile.
func FromTable(t *table.Table) *leaseholdv1.Table {
	n := t.Len()
	out := &leaseholdv1.Table{
		Lsn:         uint64(t.LSN()),
		Newest:      uint64(t.Newest()),
		Starts:      make([]uint64, 0, n),
		Generations: make([]uint64, 0, n),
		HeldBy:      make([]uint32, 0, n),
		Lost:        make([]uint64, 0, n),
	}
	holders := newHolderList()
	adopted, known := make([]uint64, 0, n), false
	gap := t.Gap()
	for _, g := range t.Gaps() {
		out.Gaps = append(out.Gaps, &leaseholdv1.Gap{From: uint64(g.From), After: uint64(g.After), Base: uint64(g.Base), Newest: uint64(g.Newest)})
	}
	if len(out.Gaps) > 0 {
		out.LostBefore = make([]uint64, 0, n)
	}
	for r, e := range t.All() {
		heldBy := uint32(0)
		if !e.Vacant() {
			heldBy = holders.index(e.Holder) + 1
		}
		out.Starts = append(out.Starts, uint64(r.Start))
		out.Generations = append(out.Generations, uint64(e.Generation))
		out.HeldBy = append(out.HeldBy, heldBy)
		out.Lost = append(out.Lost, uint64(max(e.Lost, gap.Base)))
		if len(out.Gaps) > 0 {
			out.LostBefore = append(out.LostBefore, uint64(e.Lost))
		}
		adopted = append(adopted, uint64(e.Adopted))
		known = known || e.Adopted != 0
	}
	out.Holders = holders.list
	if known {
		out.Adopted = adopted
	}
	return out
}

// ToTable decodes a table. nil is an error. Equal adjacent ranges are merged.
func ToTable(t *leaseholdv1.Table, l protocol.Limits) (*table.Table, error) {
	if err := checkColumns(t, l); err != nil {
		return nil, err
	}
	holders, err := toHolders(t.GetHolders())
	if err != nil {
		return nil, err
	}
	var b keyrange.Builder[table.Entry]
	b.Grow(len(t.GetStarts()))
	for i, start := range t.GetStarts() {
		e := table.Entry{
			Generation: leasehold.Generation(t.GetGenerations()[i]),
			Lost:       leasehold.LSN(t.GetLost()[i]),
		}
		if len(t.GetGaps()) > 0 {
			e.Lost = leasehold.LSN(t.GetLostBefore()[i])
		}
		if column := t.GetAdopted(); len(column) > 0 {
			e.Adopted = leasehold.Generation(column[i])
		}
		if by := t.GetHeldBy()[i]; by > 0 {
			if int64(by) > int64(len(holders)) {
				return nil, badTable("range %d is held by holder %d of %d", i, by, len(holders))
			}
			e.Holder = holders[by-1]
		}
		if !b.Append(leasehold.Key(start), e) {
			return nil, badTable("range %d starts at %v: starts must rise from 0", i, leasehold.Key(start))
		}
	}
	out, err := table.Restore(leasehold.LSN(t.GetLsn()), leasehold.Generation(t.GetNewest()), b.Map())
	if err != nil || len(t.GetGaps()) == 0 {
		return out, err
	}
	gaps := make([]table.Gap, len(t.GetGaps()))
	for i, g := range t.GetGaps() {
		gaps[i] = toGap(g)
	}
	return out.WithGaps(gaps)
}

func toGap(g interface {
	GetFrom() uint64
	GetAfter() uint64
	GetBase() uint64
	GetNewest() uint64
},
) table.Gap {
	return table.Gap{
		From: leasehold.LSN(g.GetFrom()), After: leasehold.LSN(g.GetAfter()),
		Base: leasehold.LSN(g.GetBase()), Newest: leasehold.Generation(g.GetNewest()),
	}
}

// checkColumns checks the lengths of all columns before they are allocated and indexed.
func checkColumns(t *leaseholdv1.Table, l protocol.Limits) error {
	n := len(t.GetStarts())
	switch {
	case n > l.Ranges:
		return leasehold.Errorf(opTable, leasehold.ErrLimit, "", "%d ranges, at most %d are allowed", n, l.Ranges)
	case n == 0:
		return badTable("it has no range: the least is one from key 0 on")
	case len(t.GetGenerations()) != n || len(t.GetHeldBy()) != n || len(t.GetLost()) != n:
		return badTable("its columns have %d starts, %d generations, %d holders and %d losses: want as many of each",
			n, len(t.GetGenerations()), len(t.GetHeldBy()), len(t.GetLost()))
	case len(t.GetAdopted()) != 0 && len(t.GetAdopted()) != n:
		return badTable("found: %d values for %d ranges, want none or all", len(t.GetAdopted()), n)
	case len(t.GetGaps()) > 0 && len(t.GetLostBefore()) != n || len(t.GetGaps()) == 0 && len(t.GetLostBefore()) != 0:
		return badTable("lost before a gap: %d values for %d ranges, want all or none", len(t.GetLostBefore()), n)
	case len(t.GetHolders()) > n:
		return badTable("%d holders of %d ranges", len(t.GetHolders()), n)
	case t.GetNewest() > maxGeneration:
		return badTable("generation %d is beyond the last, %d", t.GetNewest(), uint64(maxGeneration))
	}
	return nil
}

func badTable(format string, args ...any) error {
	return leasehold.Errorf(opTable, leasehold.ErrInvalid, "", format, args...)
}
