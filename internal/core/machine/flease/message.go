package flease

import (
	"cmp"
	"time"
)

// A Process is the id of a member of the system. Zero is none.
type Process uint32

// Wall is a time on a process's wall clock, in nanoseconds since 1970.
type Wall int64

// Add returns the time d later.
func (w Wall) Add(d time.Duration) Wall { return w + Wall(d) }

// Sub returns the time from o to w.
func (w Wall) Sub(o Wall) time.Duration { return time.Duration(w - o) }

// A Ballot numbers a round of the register of one resource. Ballots are ordered by time interval,
// number within the interval, and process.
type Ballot struct {
	Interval uint64
	Round    uint32
	Process  Process
}

// Compare returns -1, 0 or 1.
func (b Ballot) Compare(o Ballot) int {
	if b.Interval != o.Interval {
		return cmp.Compare(b.Interval, o.Interval)
	}
	if b.Round != o.Round {
		return cmp.Compare(b.Round, o.Round)
	}
	return cmp.Compare(b.Process, o.Process)
}

// Less reports whether b comes before o.
func (b Ballot) Less(o Ballot) bool { return b.Compare(o) < 0 }

// A Value is the content of a register: the owner of the lease, and its end. Without Owner it is
// empty.
type Value struct {
	Owner       Process
	Released    bool   // the owner has released it
	Incarnation uint64 // of the owner
	Serial      uint64 // increases with each value that the owner writes
	Fence       uint64 // increases with each tenure
	Until       Wall   // end on the owner's wall clock
	// Left is the remaining time of the lease on the owner's monotonic clock, at the send time of
	// the message. It does not include the message delay, so it is an upper bound.
	Left time.Duration
}

// same reports whether v and o are the same write of the owner.
func (v *Value) same(o *Value) bool {
	return v.Owner == o.Owner && v.Incarnation == o.Incarnation && v.Fence == o.Fence && v.Serial == o.Serial
}

// sameOwner reports whether v and o have the same owner in the same incarnation.
func (v *Value) sameOwner(o *Value) bool {
	return v.Owner == o.Owner && v.Incarnation == o.Incarnation
}

// A Kind is the type of a message.
type Kind uint8

// Kinds of messages. Reads, writes and insists go from proposers to acceptors; the others are
// replies.
const (
	KindRead    Kind = iota + 1 // requests the promise of a round, and the value
	KindWrite                   // requests to store a value
	KindPromise                 // reply to a read
	KindAccept                  // reply to a write
	KindReject                  // reply to either
	KindHeld                    // reply to a read: another process has the lease, and nothing is promised
	KindInsist                  // a read that requires a promise although another process may have the lease
)

// A Message is about one resource. Many are sent together, in an [Envelope].
type Message struct {
	Kind Kind
	// To is the receiver's ref of the resource, as assigned by it; 0 in a read.
	To Ref
	// From is the sender's ref; 0 if there is no reply.
	From Ref
	// Name is the resource. Only a read needs it; in other messages it may be missing, and is
	// informational.
	Name   string
	Ballot Ballot // of the round
	// Written is the ballot at which a reported value was written, and in a rejection the ballot
	// that must be exceeded.
	Written Ballot
	Value   Value  // in a promise, in a write, and in KindHeld; in an accept only the Serial
	Fence   uint64 // in a promise and in KindHeld: the highest known
}

// An Envelope is the common header of messages that are sent together.
type Envelope struct {
	From        Process
	Incarnation uint64 // of the sender: random, new with every start
	Waiting     bool   // the sender does not participate yet
	GiveWay     bool   // a twin of the receiver stays, so the receiver must give way
	// To is the receiver's incarnation as known to the sender, 0 if unknown. A write to another
	// incarnation is void.
	To   uint64
	Sent Wall // the sender's clock
	Echo Wall // Sent of the last envelope that the sender received from the receiver; 0 if none
}
