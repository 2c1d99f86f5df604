package wire

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/partition"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// get decodes one field of a message. It has no effect after the first error.
func get[M, V any](first *error, field M, read func(M) (V, error)) (out V) {
	if *first == nil {
		out, *first = read(field)
	}
	return out
}

// checked returns a decoded message unless its validation failed.
func checked[T any](out *T, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	return out, nil
}

// fromEach encodes every element of a list. The result for an empty list is nil.
func fromEach[V, M any](list []V, write func(*V) M) []M {
	var out []M
	for i := range list {
		out = append(out, write(&list[i]))
	}
	return out
}

// toEach decodes every element of a list. The result for an empty list is nil.
func toEach[M, V any](list []M, read func(M) (V, error)) ([]V, error) {
	var out []V
	for _, m := range list {
		v, err := read(m)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// toID decodes a session or a ticket. No bytes are the zero value.
func toID[T ~[16]byte](op string, b []byte) (T, error) {
	var id T
	if len(b) != 0 && len(b) != len(id) {
		return id, leasehold.Errorf(op, leasehold.ErrInvalid, "", "it has %d bytes, want %d", len(b), len(id))
	}
	copy(id[:], b)
	return id, nil
}

// fromID encodes a session or a ticket. The zero value is no bytes.
func fromID[T ~[16]byte](id T) []byte {
	if id == (T{}) {
		return nil
	}
	return id[:]
}

func toRange(start, limit uint64) leasehold.Range {
	return leasehold.Range{Start: leasehold.Key(start), Limit: leasehold.Key(limit)}
}

// FromLease encodes a lease.
func FromLease(l leasehold.Lease) *leaseholdv1.Lease {
	return &leaseholdv1.Lease{
		Start:      uint64(l.Range.Start),
		Limit:      uint64(l.Range.Limit),
		Generation: uint64(l.Generation),
	}
}

// ToLease decodes a lease. nil is an error.
func ToLease(l *leaseholdv1.Lease) (leasehold.Lease, error) {
	return toLease(l.GetStart(), l.GetLimit(), l.GetGeneration())
}

func toLease(start, limit, generation uint64) (leasehold.Lease, error) {
	out := leasehold.Lease{Range: toRange(start, limit), Generation: leasehold.Generation(generation)}
	if !out.Range.Valid() || generation == 0 || generation > maxGeneration {
		return leasehold.Lease{}, leasehold.Errorf("read lease", leasehold.ErrInvalid, out.String(),
			"want a range with keys in it and a generation from 1 to %d", uint64(maxGeneration))
	}
	return out, nil
}

func fromLeases(n int, at func(i int) leasehold.Lease) *leaseholdv1.LeaseSet {
	if n == 0 {
		return nil
	}
	column := make([]uint64, 3*n) // one allocation
	out := &leaseholdv1.LeaseSet{Starts: column[:n:n], Limits: column[n : 2*n : 2*n], Generations: column[2*n:]}
	for i := range n {
		l := at(i)
		out.Starts[i], out.Limits[i], out.Generations[i] = uint64(l.Range.Start), uint64(l.Range.Limit), uint64(l.Generation)
	}
	return out
}

// toLeases decodes a set of leases into a list. lease returns the lease of an element.
func toLeases[T any](s *leaseholdv1.LeaseSet, l protocol.Limits, lease func(*T) *leasehold.Lease) ([]T, error) {
	const op = "read leases"
	n := len(s.GetStarts())
	switch {
	case n > l.Leases:
		return nil, leasehold.Errorf(op, leasehold.ErrLimit, "", "%d leases, at most %d are allowed", n, l.Leases)
	case len(s.GetLimits()) != n || len(s.GetGenerations()) != n:
		return nil, leasehold.Errorf(op, leasehold.ErrInvalid, "", "columns of %d starts, %d limits and %d generations: want as many of each",
			n, len(s.GetLimits()), len(s.GetGenerations()))
	}
	out := make([]T, n)
	for i := range out {
		read, err := toLease(s.GetStarts()[i], s.GetLimits()[i], s.GetGenerations()[i])
		if err != nil {
			return nil, err
		}
		*lease(&out[i]) = read
	}
	return out, nil
}

func fromTiming(t protocol.Timing) *leaseholdv1.Timing {
	return &leaseholdv1.Timing{Lease: int64(t.Lease), Renew: int64(t.Renew), Drift: float64(t.Drift)}
}

func toTiming(t *leaseholdv1.Timing) protocol.Timing {
	return protocol.Timing{
		Lease: time.Duration(t.GetLease()),
		Renew: time.Duration(t.GetRenew()),
		Drift: mono.Drift(t.GetDrift()),
	}
}

// FromLoads encodes loads, nil as nil.
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

// ToLoads decodes loads, nil as nil. The protocol validates their values.
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
