package protocol

import (
	"encoding/hex"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// # Moves
//
// To move a range between two owners that support moves, the leader does not recall the lease. It
// sends the source a [Departure] and the target an [Arrival] with the same ticket, and keeps
// renewing. The source copies the state while it serves. Then it stops serving the range, sends the
// rest, and waits for the target's confirmation. Only then does it release the lease: its next
// request lacks the lease and has a [MoveReport] in the state MoveDone. The leader commits the
// change of the holder, which is not a loss, and offers the lease to the target with the ticket.
// The target accepts an offer with a ticket only if it has the state of that ticket.
//
// A failure before the release is harmless: the source still has all the state, and serves the
// range again. Tickets need not survive their leader: a move that the leader's messages do not
// contain any more is over. But a source that has released a range reports it to every leader until
// it is committed. A target keeps confirmed state for a while and reports it as an [Import]. If a
// leader finds that the target holds the range in the table, and that nothing was lost there since
// the start of the move, it offers the target the lease with the ticket.
//
// A leader without a table (census) relies on the reports of the two owners alone. Their Backing
// proves that no leader so far has expired either of them; so the range cannot have been granted to
// another owner.

// A Ticket identifies one move. Only the leader, the source and the target have it, so it also
// authenticates the source to the target.
type Ticket [16]byte

// IsZero reports whether t is no ticket.
func (t Ticket) IsZero() bool { return t == Ticket{} }

// Short returns a prefix for logs. It does not disclose the ticket.
func (t Ticket) Short() string { return hex.EncodeToString(t[:4]) }

// A Departure instructs an owner to send the state of a range to another.
type Departure struct {
	Ticket Ticket
	Range  leasehold.Range
	To     *table.Holder
	Mover  string // address at which To receives state; empty if the source has sent it already
	// Identity is the authenticated identity of To; empty if unknown.
	Identity string
}

// An Arrival announces to an owner that another will send it the state of a range.
type Arrival struct {
	Ticket Ticket
	Range  leasehold.Range
	From   *table.Holder
	Since  Since
	// Identity is the authenticated identity of From; empty if unknown.
	Identity string
}

// MaxIdentityLen is the maximum length of an identity, as in SPIFFE.
const MaxIdentityLen = 2048

// Since is the table at the start of a move: its LSN, and the newest generation ever granted.
type Since struct {
	LSN    leasehold.LSN
	Newest leasehold.Generation
}

// A MoveState is the state of a move at its source.
type MoveState uint8

// States of a move.
const (
	MoveCopying MoveState = 1 // the source serves the range, and copies its state
	MoveStopped MoveState = 2 // the source has stopped serving it, and sends the rest
	MoveDone    MoveState = 3 // the target has confirmed; the source has released the lease
	MoveFailed  MoveState = 4 // the source has aborted the move, and serves the range again
)

// A MoveReport is the source's report about a move, in every request until the leader has processed
// its end.
type MoveReport struct {
	Ticket Ticket
	Range  leasehold.Range
	To     *table.Holder
	State  MoveState
	// Newest is the newest generation of the leases that are moved. Leases that the source got
	// later are not part of the move.
	Newest leasehold.Generation
	// Backing is the term of the leader that last extended the source's deadline, if the deadline
	// has never passed since the source released the range; 0 if it has. For a census it proves
	// that no leader has expired the source.
	Backing leasehold.Term

	Records, Bytes uint64 // sent so far
}

// An Import is state that a target has confirmed, and that has no lease yet.
type Import struct {
	Ticket Ticket
	Range  leasehold.Range
	Since  Since // from the Arrival
	// Backing is the term of the leader that last extended the target's deadline, if its message
	// contained the move and the deadline has not passed; 0 otherwise. It proves that this leader
	// relied on the target, and that no leader has expired it.
	Backing leasehold.Term
}

// Limits of moves and loads in one message.
const (
	MaxMoves   = 256
	MaxCells   = 4096
	MaxHotKeys = 64
)

// MaxAtATime limits the concurrent moves from, and to, an owner. It leaves room in a message for
// moves that are over and not yet committed.
const MaxAtATime = 64

func validateMoves(r *LeaseRequest) error {
	bad := func(format string, args ...any) error {
		return leasehold.Errorf("lease request", leasehold.ErrInvalid, string(r.Holder.Owner), format, args...)
	}
	switch {
	case len(r.Mover) > leasehold.MaxAddrLen:
		return bad("the mover's address has %d bytes, want at most %d", len(r.Mover), leasehold.MaxAddrLen)
	case len(r.Moves) > MaxMoves || len(r.Imports) > MaxMoves:
		return leasehold.Errorf("lease request", leasehold.ErrLimit, string(r.Holder.Owner), "%d moves and %d imports, at most %d of each are allowed", len(r.Moves), len(r.Imports), MaxMoves)
	}
	for i := range r.Moves {
		m := &r.Moves[i]
		if m.Ticket.IsZero() || !m.Range.Valid() || m.To == nil || ValidateHolder(m.To) != nil || m.State < MoveCopying || m.State > MoveFailed {
			return bad("move %d of %v in state %d is invalid", i, m.Range, m.State)
		}
	}
	for i := range r.Moves {
		for j := range i {
			if a, b := &r.Moves[i], &r.Moves[j]; a.State == MoveDone && b.State == MoveDone && a.Range.Overlaps(b.Range) {
				return bad("moves of %v and %v are both done, and overlap", b.Range, a.Range)
			}
		}
	}
	for i := range r.Imports {
		if m := &r.Imports[i]; m.Ticket.IsZero() || !m.Range.Valid() {
			return bad("import %d of %v is invalid", i, m.Range)
		}
	}
	if r.Loads == nil {
		return nil
	}
	return validateLoads(r)
}

func validateLoads(r *LeaseRequest) error {
	if c, h := len(r.Loads.Cells), len(r.Loads.Hot); c > MaxCells || h > MaxHotKeys {
		return leasehold.Errorf("lease request", leasehold.ErrLimit, string(r.Holder.Owner),
			"loads of %d cells and %d hot keys, at most %d and %d are allowed", c, h, MaxCells, MaxHotKeys)
	}
	return r.Loads.Validate()
}

func validateOrders(r *LeaseReply) error {
	bad := func(what string, i int) error {
		return leasehold.Errorf("lease reply", leasehold.ErrInvalid, string(r.Leader), "%s %d is invalid", what, i)
	}
	if n := len(r.Departures) + len(r.Arrivals); n > 2*MaxMoves {
		return leasehold.Errorf("lease reply", leasehold.ErrLimit, string(r.Leader), "%d moves, at most %d are allowed", n, 2*MaxMoves)
	}
	for i := range r.Departures {
		d := &r.Departures[i]
		if d.Ticket.IsZero() || !d.Range.Valid() || d.To == nil || len(d.Mover) > leasehold.MaxAddrLen || len(d.Identity) > MaxIdentityLen || ValidateHolder(d.To) != nil {
			return bad("departure", i)
		}
	}
	for i := range r.Arrivals {
		a := &r.Arrivals[i]
		if a.Ticket.IsZero() || !a.Range.Valid() || a.From == nil || len(a.Identity) > MaxIdentityLen || ValidateHolder(a.From) != nil {
			return bad("arrival", i)
		}
	}
	return nil
}
