package protocol

import (
	"encoding/hex"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// # Migration
//
// When the leader wants a range to go from one owner to another, and both can
// move state, it does not recall the lease. It tells the source about a
// [Departure] and the target about an [Arrival], under one ticket, and goes on
// renewing. The source copies the state while it serves. Then it stops serving
// the range, sends the rest, and waits until the target has confirmed that it
// has everything. Only then does it lack the lease in its requests, and says
// with a [MoveReport] in the same request that the state is with the target.
// The leader records that the lease has gone from the one to the other, which
// is no loss, and offers it to the target with the ticket. The target takes an
// offer with a ticket only if it has what came under that ticket.
//
// Whatever fails before the source has lacked the lease costs nothing: the
// source, which still has all the state, serves the range again. No ticket needs
// to outlive its leader. A move that the leader no longer speaks of is over. But
// a source that has let go of a range says so to whoever leads, until that is
// recorded; and a target keeps for a while what it has confirmed, and says that
// it has it: a leader that finds in the table that the target holds the range,
// and that nothing was lost there since the move began, offers it the lease with
// the ticket.
//
// A leader that has no table to read relies on the two of them alone. They say,
// with their Backing, that every leader so far has counted on both of them; then
// the range can have gone nowhere else.

// A Ticket names one move. Only the leader, the source and the target know it,
// so that it also proves to the target that its peer is the source.
type Ticket [16]byte

// IsZero reports whether t names no move.
func (t Ticket) IsZero() bool { return t == Ticket{} }

// Short is a prefix, for logs. It does not give the ticket away.
func (t Ticket) Short() string { return hex.EncodeToString(t[:4]) }

// A Departure tells an owner to send the state of a range to another.
type Departure struct {
	Ticket Ticket
	Range  leasehold.Range
	To     *table.Holder
	Mover  string // where To takes state in; empty if the source has sent it already
	// Identity is as whom To has shown itself; empty if the leader does not know.
	Identity string
}

// An Arrival tells an owner that another will send it the state of a range.
type Arrival struct {
	Ticket Ticket
	Range  leasehold.Range
	From   *table.Holder
	Since  Since
	// Identity is as whom From has shown itself; empty if the leader does not know.
	Identity string
}

// MaxIdentityLen is how long an identity may be: as long as SPIFFE lets one be.
const MaxIdentityLen = 2048

// Since is the table when a move began: its newest change, and the newest
// generation ever granted.
type Since struct {
	LSN    leasehold.LSN
	Newest leasehold.Generation
}

// A MoveState says how far a source has come with a move.
type MoveState uint8

// The states.
const (
	MoveCopying MoveState = 1 // it serves the range, and copies
	MoveStopped MoveState = 2 // it has stopped serving it, and sends the rest
	MoveDone    MoveState = 3 // the target has confirmed; the source has let go of the lease
	MoveFailed  MoveState = 4 // it has given up, and serves the range again
)

// A MoveReport is what a source says about a move, in every request until the
// leader has heard how it ended.
type MoveReport struct {
	Ticket Ticket
	Range  leasehold.Range
	To     *table.Holder
	State  MoveState
	// Newest is the highest generation of the leases that it began with: what the
	// source may have got since is not meant.
	Newest leasehold.Generation
	// Backing is the term of the leader that last gave the source time, if since
	// the source let go that time has never run out; 0 if it has. A leader that
	// collects takes it for proof that no leader has given the source up.
	Backing leasehold.Term

	Records, Bytes uint64 // sent so far
}

// An Import is state that a target has confirmed, and has no lease for yet.
type Import struct {
	Ticket Ticket
	Range  leasehold.Range
	Since  Since // as the leader said
	// Backing is the term of the leader that last gave the target time, if its
	// message named the move and that time has not run out; 0 otherwise. It is
	// proof that the leader counted on the target, and that none has given it up.
	Backing leasehold.Term
}

// Bounds on what one message says about moves and loads.
const (
	MaxMoves   = 256
	MaxCells   = 4096
	MaxHotKeys = 64
)

// MaxAtATime bounds how much state an owner sends, and takes in, at a time, in
// ranges. It leaves room in a message for moves that are over and not recorded.
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
			return bad("move %d of %v in state %d makes no sense", i, m.Range, m.State)
		}
	}
	for i := range r.Moves {
		for j := range i {
			if a, b := &r.Moves[i], &r.Moves[j]; a.State == MoveDone && b.State == MoveDone && a.Range.Overlaps(b.Range) {
				return bad("it has let go of %v and of %v, which overlap", b.Range, a.Range)
			}
		}
	}
	for i := range r.Imports {
		if m := &r.Imports[i]; m.Ticket.IsZero() || !m.Range.Valid() {
			return bad("import %d of %v makes no sense", i, m.Range)
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
		return leasehold.Errorf("lease reply", leasehold.ErrInvalid, string(r.Leader), "%s %d makes no sense", what, i)
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
