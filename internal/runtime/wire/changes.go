package wire

import (
	"math"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const opChanges = "read changes"

// FromChanges encodes changes for the store, with the LSNs from + 1, from + 2 and so on, in linear time.
func FromChanges(from leasehold.LSN, cs []table.Change) *leaseholdv1.Changes {
	holders := newHolderList()
	n := len(cs)
	columns := make([]uint64, 3*n) // one allocation
	out := &leaseholdv1.Changes{
		From:        uint64(from),
		Kinds:       make([]leaseholdv1.ChangeKind, n),
		Starts:      columns[:n:n],
		Limits:      columns[n : 2*n : 2*n],
		Generations: columns[2*n:],
		HeldBy:      make([]uint32, n),
		Causes:      make([]leaseholdv1.Cause, n),
	}
	for i := range cs {
		c := &cs[i]
		out.Kinds[i] = leaseholdv1.ChangeKind(c.Kind)
		out.Starts[i] = uint64(c.Range.Start)
		out.Limits[i] = uint64(c.Range.Limit)
		out.Generations[i] = uint64(c.Generation)
		out.HeldBy[i] = holders.index(c.Holder)
		out.Causes[i] = leaseholdv1.Cause(c.Cause)
		if c.Reason != table.NoReason && out.Reasons == nil {
			out.Reasons = make([]leaseholdv1.Reason, n)
		}
		if out.Reasons != nil {
			out.Reasons[i] = leaseholdv1.Reason(c.Reason)
		}
		if c.From == nil {
			continue
		}
		if out.MovedFrom == nil {
			out.MovedFrom = make([]uint32, n) // most messages have none
		}
		out.MovedFrom[i] = holders.index(c.From) + 1
	}
	out.Holders = holders.list
	return out
}

// ToChanges decodes changes. nil is an error. It cannot check whether they apply to a table.
//
// An unknown kind is rejected, because it cannot be applied. An unknown cause or reason is of a newer peer,
// and is kept as its number.
func ToChanges(cs *leaseholdv1.Changes, l protocol.Limits) ([]table.Change, error) {
	n := len(cs.GetKinds())
	switch {
	case cs == nil:
		return nil, badChanges("they are missing")
	case n > l.Changes:
		return nil, leasehold.Errorf(opChanges, leasehold.ErrLimit, "", "%d changes, at most %d are allowed", n, l.Changes)
	case len(cs.GetStarts()) != n || len(cs.GetLimits()) != n || len(cs.GetGenerations()) != n || len(cs.GetHeldBy()) != n || len(cs.GetCauses()) != n:
		return nil, badChanges("columns of %d kinds, %d starts, %d limits, %d generations, %d holders and %d causes: want as many of each",
			n, len(cs.GetStarts()), len(cs.GetLimits()), len(cs.GetGenerations()), len(cs.GetHeldBy()), len(cs.GetCauses()))
	case len(cs.GetMovedFrom()) != 0 && len(cs.GetMovedFrom()) != n:
		return nil, badChanges("moved from: %d values for %d changes, want none or all", len(cs.GetMovedFrom()), n)
	case len(cs.GetReasons()) != 0 && len(cs.GetReasons()) != n:
		return nil, badChanges("%d changes have a reason, of %d: want none, or all", len(cs.GetReasons()), n)
	case len(cs.GetHolders()) > n+len(cs.GetMovedFrom()):
		return nil, badChanges("%d holders of %d changes", len(cs.GetHolders()), n)
	case cs.GetFrom() > math.MaxUint64-uint64(n):
		return nil, badChanges("%d changes from lsn %d are beyond the last", n, cs.GetFrom())
	}
	holders, err := toHolders(cs.GetHolders())
	if err != nil {
		return nil, err
	}
	out := make([]table.Change, n)
	for i := range out {
		if out[i], err = toChange(cs, i, holders); err != nil {
			return nil, err
		}
		out[i].LSN = leasehold.LSN(cs.GetFrom()) + leasehold.LSN(i) + 1
	}
	return out, nil
}

// toChange decodes one row of columns with checked lengths.
func toChange(cs *leaseholdv1.Changes, i int, holders []*table.Holder) (table.Change, error) {
	r := toRange(cs.GetStarts()[i], cs.GetLimits()[i])
	given, holder, generation, cause := cs.GetKinds()[i], cs.GetHeldBy()[i], cs.GetGenerations()[i], cs.GetCauses()[i]
	kind := table.Kind(given)
	switch {
	case int64(holder) >= int64(len(holders)):
		return table.Change{}, badChanges("holder %d of %d", holder, len(holders))
	case leaseholdv1.ChangeKind(kind) != given || kind < table.Granted || kind > table.Moved:
		return table.Change{}, badChanges("unknown kind %d", given)
	case cause < 0 || cause > math.MaxUint8:
		return table.Change{}, badChanges("unknown cause %d", cause)
	case !r.Valid() || generation == 0 || generation > maxGeneration:
		return table.Change{}, badChanges("%v at generation %d is not a lease", r, generation)
	}
	from, err := movedFrom(cs, i, holders)
	if err != nil {
		return table.Change{}, err
	}
	reason := leaseholdv1.Reason_REASON_UNSPECIFIED
	if column := cs.GetReasons(); len(column) > 0 {
		reason = column[i]
	}
	if reason < 0 || reason > math.MaxUint8 {
		return table.Change{}, badChanges("unknown reason %d", reason)
	}
	return table.Change{
		Kind:       kind,
		Range:      r,
		Generation: leasehold.Generation(generation),
		Holder:     holders[holder],
		Cause:      leasehold.Cause(cause),
		From:       from,
		Reason:     table.Reason(reason),
	}, nil
}

// movedFrom decodes the source of a move. Changes of version 1 lack the column.
func movedFrom(cs *leaseholdv1.Changes, i int, holders []*table.Holder) (*table.Holder, error) {
	place := uint32(0)
	if column := cs.GetMovedFrom(); len(column) > 0 {
		place = column[i]
	}
	switch moves := cs.GetKinds()[i] == leaseholdv1.ChangeKind_CHANGE_KIND_MOVED; {
	case moves != (place != 0):
		return nil, badChanges("change %d of kind %d: moves, and only moves, have a source", i, cs.GetKinds()[i])
	case place == 0:
		return nil, nil
	case int64(place) > int64(len(holders)):
		return nil, badChanges("change %d comes from holder %d of %d", i, place, len(holders))
	}
	return holders[place-1], nil
}

func badChanges(format string, args ...any) error {
	return leasehold.Errorf(opChanges, leasehold.ErrInvalid, "", format, args...)
}
