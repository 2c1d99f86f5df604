package protocol

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/partition"
)

// Limits are the limits of one message.
type Limits struct {
	Leases  int // leases of one owner
	Changes int // changes in one lookup reply
	Ranges  int // ranges of a table
}

// DefaultLimits are a thousand times the size of the paper's deployment.
var DefaultLimits = Limits{Leases: 1 << 16, Changes: 1 << 16, Ranges: 1 << 20}

// Validate reports an invalid request.
func (r *LeaseRequest) Validate(l Limits) error {
	const op = "lease request"
	if r.Holder == nil {
		return leasehold.Errorf(op, leasehold.ErrInvalid, string(r.Namespace), "has no holder")
	}
	if err := ValidateHolder(r.Holder); err != nil {
		return err
	}
	bad := func(format string, args ...any) error {
		return leasehold.Errorf(op, leasehold.ErrInvalid, string(r.Holder.Owner), format, args...)
	}
	switch {
	case r.Namespace.Validate() != nil:
		return r.Namespace.Validate()
	case r.Seq == 0:
		return bad("sequence numbers start at 1")
	case r.Applied > r.Heard:
		return bad("acknowledges message %d as applied, after message %d as received", r.Applied, r.Heard)
	case r.Term > MaxTerm:
		return bad("term %d exceeds the limit", r.Term)
	case r.Term == 0 && r.Heard != 0:
		return bad("acknowledges message %d without a term", r.Heard)
	case r.Leaving && len(r.Leases) > 0:
		return bad("is leaving, and has %d leases", len(r.Leases))
	case len(r.Leases) > l.Leases:
		return leasehold.Errorf(op, leasehold.ErrLimit, string(r.Holder.Owner), "%d leases, at most %d are allowed", len(r.Leases), l.Leases)
	case !(r.Load >= 0 && r.Load <= partition.MaxRate): // also rejects NaN
		return bad("load is %v, want 0 to %g", r.Load, float64(partition.MaxRate))
	case r.Gone == r.Holder.Session && !r.Gone.IsZero():
		return bad("reports its own session as gone")
	}
	if err := validateMoves(r); err != nil {
		return err
	}
	return validateLeases(op, r.Leases, func(l leasehold.Lease) leasehold.Lease { return l })
}

// ValidateHolder reports an invalid holder.
func ValidateHolder(h *table.Holder) error {
	const op = "holder"
	bad := func(format string, args ...any) error {
		return leasehold.Errorf(op, leasehold.ErrInvalid, string(h.Owner), format, args...)
	}
	if err := h.Owner.Validate(); err != nil {
		return err
	}
	switch {
	case h.Session.IsZero():
		return bad("has no session")
	case h.Addr == "" || len(h.Addr) > leasehold.MaxAddrLen:
		return bad("address has %d bytes, want 1 to %d", len(h.Addr), leasehold.MaxAddrLen)
	case !(h.Weight > 0 && h.Weight <= MaxWeight): // also rejects NaN
		return bad("weight is %v, want more than 0 and at most %d", h.Weight, MaxWeight)
	case len(h.Process) > leasehold.MaxAddrLen:
		return bad("process identity has %d bytes, want at most %d", len(h.Process), leasehold.MaxAddrLen)
	}
	return nil
}

// MaxTerm bounds the term that a faulty peer can introduce, so that terms are not exhausted.
const MaxTerm = 1 << 48

// MaxWeight is the maximum weight of an owner.
const MaxWeight = 1000

// Validate reports an invalid reply.
func (r *LeaseReply) Validate(l Limits) error {
	const op = "lease reply"
	bad := func(format string, args ...any) error {
		return leasehold.Errorf(op, leasehold.ErrInvalid, string(r.Leader), format, args...)
	}
	switch {
	case r.Namespace.Validate() != nil:
		return r.Namespace.Validate()
	case r.Session.IsZero():
		return bad("has no session")
	case r.Term == 0 || r.Term > MaxTerm || r.Seq == 0:
		return bad("term %d and sequence number %d must be positive", r.Term, r.Seq)
	case len(r.Offers) > l.Leases:
		return leasehold.Errorf(op, leasehold.ErrLimit, string(r.Leader), "%d offers, at most %d are allowed", len(r.Offers), l.Leases)
	}
	if err := r.Timing.Validate(); err != nil {
		return err
	}
	if len(r.Leader) > leasehold.MaxOwnerIDLen {
		return bad("the leader's name has %d bytes, want at most %d", len(r.Leader), leasehold.MaxOwnerIDLen)
	}
	for _, h := range []*table.Holder{r.Incumbent, r.Contender} {
		if h == nil {
			continue
		}
		if err := ValidateHolder(h); err != nil {
			return err
		}
	}
	if err := validateOrders(r); err != nil {
		return err
	}
	return validateLeases(op, r.Offers, func(o Offer) leasehold.Lease { return o.Lease })
}

func validateLeases[T any](op string, items []T, lease func(T) leasehold.Lease) error {
	for i := range items {
		l := lease(items[i])
		if !l.Range.Valid() || l.Generation == 0 {
			return leasehold.Errorf(op, leasehold.ErrInvalid, l.String(), "is not a valid lease")
		}
		if i > 0 {
			if before := lease(items[i-1]).Range; before.Limit == 0 || before.Limit > l.Range.Start {
				return leasehold.Errorf(op, leasehold.ErrInvalid, l.String(), "leases overlap or are not sorted: %v comes before", before)
			}
		}
	}
	return nil
}

// Validate reports an invalid hint.
func (n *NotLeader) Validate() error {
	const op = "not leader"
	switch {
	case n.Term > MaxTerm:
		return leasehold.Errorf(op, leasehold.ErrInvalid, "", "term %d exceeds the limit", n.Term)
	case len(n.Leader) > leasehold.MaxOwnerIDLen:
		return leasehold.Errorf(op, leasehold.ErrInvalid, "", "the leader's name has %d bytes, want at most %d", len(n.Leader), leasehold.MaxOwnerIDLen)
	}
	return nil
}

// Validate reports an invalid request.
func (r *LookupRequest) Validate() error {
	if err := r.Namespace.Validate(); err != nil {
		return err
	}
	if r.Seq == 0 {
		return leasehold.Errorf("lookup request", leasehold.ErrInvalid, string(r.Namespace), "sequence numbers start at 1")
	}
	return nil
}

// Validate reports an invalid reply. It cannot check whether the changes fit the receiver's table:
// Apply does.
func (r *LookupReply) Validate(l Limits) error {
	const op = "lookup reply"
	bad := func(format string, args ...any) error {
		return leasehold.Errorf(op, leasehold.ErrInvalid, string(r.Leader), format, args...)
	}
	switch {
	case r.Namespace.Validate() != nil:
		return r.Namespace.Validate()
	case r.Term == 0 || r.Term > MaxTerm:
		return bad("term %d is not valid", r.Term)
	case r.Age < 0:
		return bad("age %v is negative", r.Age)
	case len(r.Changes) > l.Changes:
		return leasehold.Errorf(op, leasehold.ErrLimit, string(r.Leader), "%d changes, at most %d are allowed", len(r.Changes), l.Changes)
	case r.Snapshot != nil && len(r.Changes) > 0:
		return bad("has both a snapshot and changes")
	case r.Crossing != nil && (r.Snapshot != nil || len(r.Changes) > 0):
		return bad("has both a crossing and a snapshot or changes")
	case r.Crossing != nil && r.Crossing.Gap.Base > r.LSN:
		return bad("crosses a gap to lsn %d, reply at %d", r.Crossing.Gap.Base, r.LSN)
	case r.Crossing != nil && len(r.Crossing.Unproven)+len(r.Crossing.Silent) > l.Ranges:
		return leasehold.Errorf(op, leasehold.ErrLimit, string(r.Leader), "%d unproven ranges, at most %d are allowed", len(r.Crossing.Unproven)+len(r.Crossing.Silent), l.Ranges)
	case r.Snapshot != nil && r.Snapshot.LSN() != r.LSN:
		return bad("snapshot is at lsn %d, reply at %d", r.Snapshot.LSN(), r.LSN)
	case r.Snapshot != nil && r.Snapshot.Len() > l.Ranges:
		return leasehold.Errorf(op, leasehold.ErrLimit, string(r.Leader), "%d ranges, at most %d are allowed", r.Snapshot.Len(), l.Ranges)
	case len(r.Changes) > 0 && r.From+leasehold.LSN(len(r.Changes)) != r.LSN:
		return bad("%d changes from lsn %d do not end at %d", len(r.Changes), r.From, r.LSN)
	}
	if len(r.Leader) > leasehold.MaxOwnerIDLen {
		return bad("the leader's name has %d bytes, want at most %d", len(r.Leader), leasehold.MaxOwnerIDLen)
	}
	for i := range r.Changes {
		if h := r.Changes[i].Holder; h != nil && ValidateHolder(h) != nil {
			return ValidateHolder(h)
		}
		if r.Changes[i].LSN != r.From+leasehold.LSN(i)+1 {
			return bad("change %d has lsn %d, want %d", i, r.Changes[i].LSN, r.From+leasehold.LSN(i)+1)
		}
	}
	return nil
}
