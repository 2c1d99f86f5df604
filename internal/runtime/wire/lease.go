package wire

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// FromLease writes a lease.
func FromLease(l leasehold.Lease) *leaseholdv1.Lease {
	return &leaseholdv1.Lease{
		Start:      uint64(l.Range.Start),
		Limit:      uint64(l.Range.Limit),
		Generation: uint64(l.Generation),
	}
}

// ToLease reads a lease, which must be there.
func ToLease(l *leaseholdv1.Lease) (leasehold.Lease, error) {
	return checkLease(leasehold.Lease{
		Range:      leasehold.Range{Start: leasehold.Key(l.GetStart()), Limit: leasehold.Key(l.GetLimit())},
		Generation: leasehold.Generation(l.GetGeneration()),
	})
}

func checkLease(out leasehold.Lease) (leasehold.Lease, error) {
	if !out.Range.Valid() || out.Generation == 0 || out.Generation > maxGeneration {
		return leasehold.Lease{}, leasehold.Errorf("read lease", leasehold.ErrInvalid, out.String(),
			"want a range with keys in it and a generation from 1 to %d", uint64(maxGeneration))
	}
	return out, nil
}

// fromLeases writes n leases in columns.
func fromLeases(n int, at func(i int) leasehold.Lease) *leaseholdv1.LeaseSet {
	if n == 0 {
		return nil
	}
	column := make([]uint64, 3*n) // one allocation for all
	out := &leaseholdv1.LeaseSet{Starts: column[:n:n], Limits: column[n : 2*n : 2*n], Generations: column[2*n:]}
	for i := range n {
		l := at(i)
		out.Starts[i], out.Limits[i], out.Generations[i] = uint64(l.Range.Start), uint64(l.Range.Limit), uint64(l.Generation)
	}
	return out
}

// countLeases returns how many leases a set has, or what is wrong with it.
func countLeases(s *leaseholdv1.LeaseSet, l protocol.Limits) (int, error) {
	const op = "read leases"
	n := len(s.GetStarts())
	switch {
	case n > l.Leases:
		return 0, leasehold.Errorf(op, leasehold.ErrLimit, "", "%d leases, at most %d are allowed", n, l.Leases)
	case len(s.GetLimits()) != n || len(s.GetGenerations()) != n:
		return 0, leasehold.Errorf(op, leasehold.ErrInvalid, "", "columns of %d starts, %d limits and %d generations: want as many of each",
			n, len(s.GetLimits()), len(s.GetGenerations()))
	}
	return n, nil
}

// leaseAt reads one lease of a set that has been counted.
func leaseAt(s *leaseholdv1.LeaseSet, i int) (leasehold.Lease, error) {
	return checkLease(leasehold.Lease{
		Range:      leasehold.Range{Start: leasehold.Key(s.GetStarts()[i]), Limit: leasehold.Key(s.GetLimits()[i])},
		Generation: leasehold.Generation(s.GetGenerations()[i]),
	})
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
