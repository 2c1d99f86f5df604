// Package protocol is the messages that owners, lookups and managers exchange,
// as values, and the checks that every message passes before a machine acts
// on it. How they are written to a wire is another package's business.
//
// # The lease protocol
//
// An owner sends a [LeaseRequest] every quarter of a lease and whenever it has
// something to say; the leader answers each with a [LeaseReply] and sends
// further replies when it changes its mind. Every message carries the complete
// set of leases, so that each can be understood alone (Centrifuge 2.3).
//
// Sender and receiver number their messages. Each message carries its own
// number and the newest number heard from the peer. A message that does not
// reflect the receiver's newest is dropped, because it was sent by a peer that
// did not know what the receiver had said last (Centrifuge 2.3.2): what it
// grants or gives back may no longer be meant. The number of a dropped message
// is remembered all the same, and the dropper sends again after a random
// backoff. So a request that lacks a lease, and reflects the leader's newest
// message, proves that the owner does not have it and cannot get it from any
// message under way.
//
// The leader's numbers are scoped by its term, the owner's by its session.
package protocol

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/partition"
)

// A Seq numbers the messages of one sender, from 1.
type Seq uint64

// A LeaseRequest is what an owner says to the leader: that it is alive, and
// what it holds. It never asks for a range.
type LeaseRequest struct {
	Namespace leasehold.Namespace
	Holder    *table.Holder
	Seq       Seq // rises with every message of the session

	// Term, Heard and Applied speak of the leader that the owner last heard:
	// the newest of its messages, and the newest that was not dropped for a
	// race. Applied <= Heard. A grant first sent after Applied was never
	// installed, and may be sent again under the same generation.
	Term    leasehold.Term
	Heard   Seq
	Applied Seq

	Leases []leasehold.Lease // everything held, sorted by range; immutable
	// Suspended: the leases have reached their deadline. The owner does not act on
	// them, but keeps them and their state, and claims them.
	Suspended bool
	// Resumed is the newest generation among the leases that were suspended once, and were
	// resumed; 0 if the owner has none.
	Resumed leasehold.Generation
	Leaving bool // the owner closes: Leases is empty and stays so

	// Load is how much work per second the owner does, in a unit of its
	// application's choosing; 0 if it does not count.
	Load float64
	// Loads is how that divides among the keys held, and which keys cost most;
	// nil if there is nothing new to say. Immutable.
	Loads *partition.Loads

	// Mover is where this owner takes in the state of ranges that move to it;
	// empty if it can neither take nor give any.
	Mover string
	// Identity is as whom the owner has shown itself: what the manager that heard it
	// has seen, and not what the owner says. Empty if it has shown nothing.
	Identity string
	// Moves is how far this owner is with sending state to others.
	Moves []MoveReport
	// Imports is state that has come, and waits for its lease.
	Imports []Import
	// Parting: it wants to leave, and asks for its ranges to be moved away first.
	Parting bool
	// Draining repeats what the leader before may have said (see LeaseReply), so
	// that the one after knows.
	Draining bool

	// Gone names the session that held this owner's name before, if the
	// sender has made sure that its process no longer exists.
	Gone leasehold.Session
}

// A Speaker is who sends messages, and is answered. A session alone is nobody: it is in
// the table, where everybody finds it who may look things up. A name is its owner's.
type Speaker struct {
	Namespace leasehold.Namespace
	Owner     leasehold.OwnerID
	Session   leasehold.Session
}

// Speaker returns who has sent the request.
func (r *LeaseRequest) Speaker() Speaker {
	return Speaker{Namespace: r.Namespace, Owner: r.Holder.Owner, Session: r.Holder.Session}
}

// An Offer is one lease in a reply. A renewal extends what the owner holds; an
// owner that does not hold it refuses. Only a fresh offer gives it something
// new. The difference is what makes a restarted owner start from nothing.
type Offer struct {
	leasehold.Lease
	Fresh bool
	// Ticket says that the state has been moved to the owner. If it does not
	// have what came under the ticket, it refuses. Only of fresh offers.
	Ticket Ticket
}

// A LeaseReply is what the leader says to one session of an owner: the
// complete set of leases that it is to have. Whatever it holds beyond that is
// recalled.
type LeaseReply struct {
	Namespace leasehold.Namespace
	Session   leasehold.Session
	Leader    storage.ManagerID
	Term      leasehold.Term
	Seq       Seq // rises with every message of the leader's term, to anyone
	Echo      Seq // the newest request that the leader accepted: leases count from its sending
	Timing    Timing
	Offers    []Offer // sorted by range; immutable

	// Collecting: the leader has just taken over. It has no table and collects the leases of owners, or its store may
	// have been restored and it has not decided yet. It offers leases that the request names. Earlier orders about
	// moves and draining still apply.
	Collecting bool

	// Clock is the leader's clock when it replied, for owners to compare the
	// rates of the two clocks.
	Clock mono.Instant

	// Incumbent is set when another session has the owner's name: this one
	// gets nothing until that one is gone.
	Incumbent *table.Holder
	// Contender is set when another session wants this owner's name.
	Contender *table.Holder

	Departures []Departure // all state that it is to send; immutable
	Arrivals   []Arrival   // all state that it is to take in; immutable
	// Draining: an operator wants the owner to hold nothing. It stays a member.
	Draining bool
	// Idle answers Parting: there is nothing that could still be moved.
	Idle bool

	Goodbye bool           // answers Leaving: the table says that the owner holds nothing
	Refusal leasehold.Kind // why the owner cannot be served; Other if it can
}

// A NotLeader is what a standby answers to anything that only a leader can do.
type NotLeader struct {
	Term   leasehold.Term    // the newest term that it knows of
	Leader storage.ManagerID // who has it; empty if unknown
}

// A LookupRequest asks what has changed since LSN, and whether anything has.
type LookupRequest struct {
	Namespace leasehold.Namespace
	Lookup    uint64 // names the lookup among those that one manager talks to
	Seq       Seq
	LSN       leasehold.LSN // the lookup's table; 0 if it has none
	// Term is the newest that the lookup has heard of; 0 if it has heard of none, or
	// does not say.
	Term leasehold.Term
	// Crosses: the lookup handles LookupReply.Crossing.
	Crosses bool
}

// A LookupReply brings a lookup up to LSN: by Changes if it is at From or
// later, or by Snapshot, or to Crossing.Gap.Base by Crossing if it is at Crossing.Gap.After.
// A reply with none of them says that LSN is current.
type LookupReply struct {
	Namespace leasehold.Namespace
	Leader    storage.ManagerID // who speaks, and should be asked the next time; it need not lead
	Leads     bool              // the one who speaks does
	Term      leasehold.Term    // of the leader whose table this is
	Echo      Seq               // the request answered; 0 if the manager speaks unasked
	LSN       leasehold.LSN
	// Age is how old the manager's own knowledge may be, on any clock: a leader
	// has a commit under way since then, of which it does not know whether it
	// has happened; a standby was last told then. 0 if it knows everything.
	Age      time.Duration
	From     leasehold.LSN  // Changes[0] follows on it
	Changes  []table.Change // immutable
	Snapshot *table.Table   // immutable
	Crossing *table.Crossing
}
