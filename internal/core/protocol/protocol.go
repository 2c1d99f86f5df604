// Package protocol has the messages between owners, lookups and managers, and the validation that
// every message passes before a machine handles it. Package wire encodes them.
//
// # The lease protocol
//
// An owner sends a [LeaseRequest] every quarter of a lease, and whenever its state changes. The
// leader answers each with a [LeaseReply], and sends unsolicited replies when the assignment
// changes. Every message has the complete set of leases, so that it can be processed without
// earlier ones (Centrifuge 2.3).
//
// Each message has a sequence number of its sender, and acknowledges the newest sequence number
// received from the peer. A message that does not acknowledge the receiver's newest message is
// dropped: it crossed that message, so its grants or releases may be stale (Centrifuge 2.3.2). The
// receiver still records the sequence number of the dropped message, and sends again after a random
// backoff. So a request that acknowledges the leader's newest message and lacks a lease proves that
// the owner does not hold it, and that no message in flight can grant it.
//
// The leader's sequence numbers are scoped by its term, the owner's by its session.
package protocol

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/partition"
)

// A Seq is a sequence number of one sender, from 1.
type Seq uint64

// A LeaseRequest is an owner's heartbeat with its leases. It never requests a range.
type LeaseRequest struct {
	Namespace leasehold.Namespace
	Holder    *table.Holder
	Seq       Seq // increases with every message of the session

	// Term, Heard and Applied acknowledge messages of the leader in Term: Heard is the newest
	// received, Applied the newest that was not dropped as stale. Applied <= Heard. A grant first
	// sent after Applied was never installed, and may be sent again under the same generation.
	Term    leasehold.Term
	Heard   Seq
	Applied Seq

	Leases []leasehold.Lease // all leases, sorted by range; immutable
	// Suspended: the leases have reached their deadline. The owner does not act on them, but keeps
	// them and their state, and claims them.
	Suspended bool
	// Resumed is the newest generation among the leases that were suspended and resumed; 0 if the
	// owner has none.
	Resumed leasehold.Generation
	Leaving bool // the owner closes: Leases is empty from now on

	// Load is the owner's work per second, in a unit of the application; 0 if it is not measured.
	Load float64
	// Loads is the distribution of the load over the keys, and the hot keys; nil if unchanged.
	// Immutable.
	Loads *partition.Loads

	// Mover is the address at which this owner receives the state of ranges that move to it; empty
	// if it supports no moves.
	Mover string
	// Identity is the owner's authenticated identity, set by the manager that received the request
	// and not by the owner. Empty if it has none.
	Identity string
	// Moves is the progress of this owner's moves as a source.
	Moves []MoveReport
	// Imports is received state that waits for its lease.
	Imports []Import
	// Parting: the owner wants to leave, and requests that its ranges are moved away first.
	Parting bool
	// Draining repeats the value of the last LeaseReply, so that it survives a takeover.
	Draining bool

	// Gone is the previous session of this owner's name, if the sender has verified that its
	// process does not exist any more.
	Gone leasehold.Session
}

// A Speaker identifies the sender of requests, to which replies are sent. A session alone is not
// enough, since every lookup can read it in the table. Access control protects the owner name.
type Speaker struct {
	Namespace leasehold.Namespace
	Owner     leasehold.OwnerID
	Session   leasehold.Session
}

// Speaker returns the sender of the request.
func (r *LeaseRequest) Speaker() Speaker {
	return Speaker{Namespace: r.Namespace, Owner: r.Holder.Owner, Session: r.Holder.Session}
}

// An Offer is one lease in a reply. A renewal extends a lease that the owner holds; an owner that
// does not hold it rejects the offer. Only a fresh offer grants a new lease. This is why a
// restarted owner starts without leases.
type Offer struct {
	leasehold.Lease
	Fresh bool
	// Ticket: the state was moved to the owner. If the owner does not have the state of this
	// ticket, it rejects the offer. Only for fresh offers.
	Ticket Ticket
}

// A LeaseReply is the leader's message to one session of an owner, with its complete set of leases.
// All other leases that it holds are recalled.
type LeaseReply struct {
	Namespace leasehold.Namespace
	Session   leasehold.Session
	Leader    storage.ManagerID
	Term      leasehold.Term
	Seq       Seq // increases with every message of the leader's term, to any owner
	Echo      Seq // newest request that the leader accepted: leases count from its send time
	Timing    Timing
	Offers    []Offer // sorted by range; immutable

	// Collecting: the leader has just taken over. It has no table and collects the leases of owners, or its store may
	// have been restored and it has not decided yet. It offers leases that the request names. Earlier orders about
	// moves and draining still apply.
	Collecting bool

	// Clock is the leader's clock at the reply, with which owners compare the rates of the two
	// clocks.
	Clock mono.Instant

	// Incumbent is set if another session has the owner's name: this session gets no leases until
	// that one has ended.
	Incumbent *table.Holder
	// Contender is set if another session requests this owner's name.
	Contender *table.Holder

	Departures []Departure // all moves with this owner as source; immutable
	Arrivals   []Arrival   // all moves with this owner as target; immutable
	// Draining: an operator drains the owner. It stays a member, without leases.
	Draining bool
	// Idle answers Parting: no range is left that could be moved.
	Idle bool

	Goodbye bool           // answers Leaving: the owner holds nothing in the committed table
	Refusal leasehold.Kind // why the owner cannot be served; Other if it can
}

// A NotLeader is a standby's reply to requests that only the leader can handle.
type NotLeader struct {
	Term   leasehold.Term    // newest known term
	Leader storage.ManagerID // leader of that term; empty if unknown
}

// A LookupRequest requests the changes since LSN.
type LookupRequest struct {
	Namespace leasehold.Namespace
	Lookup    uint64 // identifies the lookup among those of one manager
	Seq       Seq
	LSN       leasehold.LSN // of the lookup's table; 0 if it has none
	// Term is the newest term that the lookup has received; 0 if none.
	Term leasehold.Term
	// Crosses: the lookup supports LookupReply.Crossing.
	Crosses bool
}

// A LookupReply advances a lookup to LSN: by Changes if it is at From or later, by Snapshot, or by
// Crossing, to Crossing.Gap.Base, if it is at Crossing.Gap.After. A reply with none of them
// confirms that LSN is current.
type LookupReply struct {
	Namespace leasehold.Namespace
	Leader    storage.ManagerID // the sending manager, which is the next one to query; not necessarily the leader
	Leads     bool              // the sending manager is the leader
	Term      leasehold.Term    // of the leader whose table this is
	Echo      Seq               // sequence number of the request; 0 for an unsolicited reply
	LSN       leasehold.LSN
	// Age is the maximum age of the manager's own state, on any clock. For a leader it is the time
	// since the start of a commit with unknown outcome, for a standby the time since its last
	// update. 0 if it is current.
	Age      time.Duration
	From     leasehold.LSN  // LSN before Changes[0]
	Changes  []table.Change // immutable
	Snapshot *table.Table   // immutable
	Crossing *table.Crossing
}
